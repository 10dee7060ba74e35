//! The rules, while a run is driven.

use crate::engine::event::Progress;
use crate::model::state::RunState;
use crate::run::coordinate::{self, Changed};

use super::{Driver, Error};

/// How much of what rules go by there is in a run; each only grows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    documents: usize,
    changes: u64,
}

impl Basis {
    fn of(state: &RunState) -> Self {
        Self { documents: state.documents.count(), changes: state.changes() }
    }

    fn changed(self, state: &RunState) -> Changed {
        let now = Self::of(state);
        Changed { documents: self.documents != now.documents, items: self.changes != now.changes }
    }
}

impl Driver<'_> {
    /// Records what the rules do, where there is something that they were not held against yet.
    pub(super) fn coordinate(&mut self) -> Result<(), Error> {
        let now = Some(Basis::of(&self.run.state));
        if self.run.state.rules.is_empty() || self.judged == now {
            return Ok(());
        }
        let changed = self.judged.map_or(Changed::ANYTHING, |before| before.changed(&self.run.state));
        self.judged = now;
        if !coordinate::is_due(self.run.store(), &self.run.state, changed)? {
            return Ok(());
        }
        self.record(&[])?;
        let links = coordinate::apply(self.run, self.machine.config.max_items)?;
        self.judged = Some(Basis::of(&self.run.state));
        self.schedule.grow(&self.run.state);
        links.iter().for_each(|link| (self.tell)(Progress::Recorded(link, &self.run.state)));
        self.catch_up()?;
        // What was added may wait for something that is lost already.
        if links.is_empty() { Ok(()) } else { self.sweep() }
    }
}
