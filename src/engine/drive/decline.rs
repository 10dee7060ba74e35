//! Leaves items to other machines that this one cannot run, because it lacks an executor, a program
//! or a submodule.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::end_entries::Batch;
use crate::engine::event::Progress;
use crate::engine::prepare::Unready;
use crate::model::beat::{Declined, MOST_DECLINED};
use crate::model::driver::MAX_TEXT;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::printable;

use super::{Driver, Error, Settled};

/// How often to try declined items again.
const RETRY: Duration = Duration::from_secs(5);

impl Driver<'_> {
    /// Decides what becomes of an item that could not be prepared: it fails, or is left to another
    /// machine or to a later try.
    pub(super) fn cannot_dispatch(&mut self, at: ItemIndex, unready: Unready, batch: &mut Batch) {
        match unready {
            Unready::Here(why) if !self.machine.is_recording => self.decline(at, why),
            unready => {
                let reason = unready.reason();
                if self.is_short_of_means(&reason) {
                    self.schedule.ended(&self.run.state, at);
                } else {
                    batch.failed(&self.run.state, at, 0, reason);
                }
            }
        }
    }

    /// Leaves an item to others, and says once what this machine lacks for it.
    fn decline(&mut self, at: ItemIndex, why: String) {
        self.schedule.decline(&self.run.state, at);
        if self.reported.insert(why.clone()) {
            let item = &self.run.state.graph.item(at).id;
            let whose = if self.shared.is_some() { "it is left to other machines" } else { "no attempt is spent" };
            (self.tell)(Progress::Note(format!("{item}: cannot be run here: {why}; {whose}")));
        }
        self.lacks.insert(at, why.clone());
        self.declined.insert(at, why);
    }

    /// Tries declined items again from time to time, because what they lack may be here now.
    pub(super) fn retry_declined(&mut self) {
        if !self.declined.is_empty() && self.retried.elapsed() >= RETRY {
            self.retried = Instant::now();
            self.look_again();
        }
    }

    /// Returns what this machine lacks, for its beats.
    pub(super) fn declines(&self) -> Vec<Declined> {
        let mut all: BTreeMap<&str, Vec<ItemId>> = BTreeMap::new();
        for (at, why) in self.lacks.iter().filter(|(at, _)| self.run.state.status(**at) == "ready") {
            let items = all.entry(why).or_default();
            if items.len() < MOST_DECLINED {
                items.push(self.run.state.graph.item(*at).id.clone());
            }
        }
        all.into_iter()
            .take(MOST_DECLINED)
            .map(|(why, items)| Declined { why: printable::cut_to(why.to_owned(), MAX_TEXT), items })
            .collect()
    }

    /// Returns true if the driver waits for decisions of people, and says so once.
    pub(super) fn waits_for_people(&mut self) -> bool {
        if self.machine.waits {
            let run = self.run.id();
            let on =
                self.run.state.waiting_for_people().map(|at| format!("{run}/{}", self.run.state.graph.item(at).id));
            let on = on.collect::<Vec<_>>().join(", ");
            self.tell_once(format!("waiting for a decision of people: {on} (Ctrl-C ends the driver)"));
        }
        self.machine.waits
    }

    /// Ends a run on one machine that can run none of the items that are left.
    pub(super) fn leave_declined(&mut self) -> Result<Settled, Error> {
        if self.declined.is_empty() {
            return Err(Error::Stuck);
        }
        let count = self.declined.len();
        let items = if count == 1 { "1 item waits".to_owned() } else { format!("{count} items wait") };
        (self.tell)(Progress::Note(format!("{items} for what this machine lacks; the next `run` goes on with them")));
        Ok(Settled { interrupted: false, sealed: None })
    }
}
