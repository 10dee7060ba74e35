//! Takes no work while this machine lacks something, such as disk space, and goes on when it can.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::attempt::Verdict;
use crate::engine::event::Progress;
use crate::engine::finished_attempt::FinishedAttempt;
use crate::engine::recover;
use crate::engine::shortage::{self, Shortage};
use crate::model::causes::in_words;
use crate::model::item_index::ItemIndex;
use crate::worktree::workspace::Workspace;

use super::{Driver, Error, POLL};

/// The pause before the first try. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause before the machine is probed again.
const PROBE_PAUSE: Duration = Duration::from_secs(2);

/// The longest pause before another try.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A condition of this machine that prevents further attempts.
pub(super) struct Short {
    shortage: Shortage,
    tries: u32,
    /// When to try again.
    due: Instant,
    /// The item whose attempt shows whether the shortage is over.
    trial: Option<ItemIndex>,
}

impl Short {
    fn new(shortage: Shortage) -> Self {
        Self { shortage, tries: 0, due: Instant::now() + FIRST_PAUSE, trial: None }
    }

    /// Sets the time of the next probe, which costs the run nothing.
    fn probe_later(&mut self) {
        (self.due, self.trial) = (Instant::now() + PROBE_PAUSE, None);
    }

    /// Sets the time of the next try.
    fn postpone(&mut self) {
        self.tries += 1;
        self.due = Instant::now() + (FIRST_PAUSE * (1 << self.tries.min(10))).min(LONGEST_PAUSE);
        self.trial = None;
    }

    /// Records which attempt shows whether the shortage is over.
    pub(super) fn begin_trial(&mut self, at: ItemIndex) {
        self.trial = Some(at);
    }
}

impl Driver<'_> {
    /// Starts nothing more for now, and says why.
    fn run_short(&mut self, shortage: Shortage, reason: &str) {
        if let Some(short) = &mut self.short {
            // Several attempts can fail at once.
            if short.due <= Instant::now() {
                short.postpone();
            }
            if short.shortage == shortage {
                return;
            }
            short.shortage = shortage;
        } else {
            self.short = Some(Short::new(shortage));
        }
        let way_out = shortage.way_out();
        (self.tell)(Progress::Note(format!(
            "nothing more is started until this is over: {reason}; {way_out}, and the run goes on by itself (Ctrl-C ends it)"
        )));
    }

    /// Records what the end of an attempt shows about this machine.
    pub(super) fn note_shortage(&mut self, finished: &FinishedAttempt) {
        let result = &finished.result;
        let Verdict::Shortage(reason) = &result.verdict else {
            if result.verdict != Verdict::Interrupted
                && self.short.take_if(|short: &mut Short| short.trial == Some(finished.at)).is_some()
            {
                (self.tell)(Progress::Note("this machine can work again: the run goes on".to_owned()));
            }
            return;
        };
        // A worktree that could not be made may be there in part.
        if result.worktree.as_ref().is_none_or(|left| !left.saved) && !self.machine.config.keep {
            self.unsaved.insert((result.item.clone(), result.attempt));
        }
        let Some((shortage, _)) = Shortage::of_reason(reason) else { return };
        if matches!(shortage, Shortage::Files | Shortage::Memory) {
            self.most = Some(self.running.len().max(1));
        }
        self.run_short(shortage, reason);
    }

    /// Returns true if an item cannot be prepared because of what this machine lacks.
    pub(super) fn is_short_of_means(&mut self, reason: &str) -> bool {
        let folders = self.machine.host.written_folders();
        let Err(shortage) = shortage::probe(&folders) else { return false };
        self.run_short(shortage, &shortage::describe(&shortage.coded(reason), &folders));
        true
    }

    /// Returns how many of this many slots can be used: one more than runs until an attempt shows
    /// that a shortage is over, and at most as many as this machine could run.
    pub(super) fn slots_when_short(&self, slots: usize) -> usize {
        let slots = slots.min(self.most.unwrap_or(slots));
        if self.short.is_some() { slots.min(self.running.len() + 1) } else { slots }
    }

    /// Returns how long nothing can be started yet because of what this machine lacks, or `None` if
    /// an attempt can be tried. Claims that wait for a slot go back meanwhile.
    pub(super) fn hold_back(&mut self) -> Result<Option<Duration>, Error> {
        let Some(short) = &mut self.short else { return Ok(None) };
        if short.trial.is_some_and(|at| self.running.contains_key(&at)) {
            return Ok(Some(POLL));
        }
        let left = short.due.saturating_duration_since(Instant::now());
        if left.is_zero() && shortage::probe(&self.machine.host.written_folders()).is_ok() {
            self.save_unsaved()?;
            return Ok(None);
        }
        if left.is_zero() {
            short.probe_later();
        }
        let why = format!("this machine lacks something: {}", short.shortage.code());
        let until_due = short.due.saturating_duration_since(Instant::now());
        let back = self.hand_back_all(&why);
        self.record(&back)?;
        Ok(Some(until_due.max(Duration::from_millis(1))))
    }

    /// Saves the work of attempts that found no space for it.
    fn save_unsaved(&mut self) -> Result<(), Error> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        let (run, host) = (self.run.id(), &self.machine.host);
        let mut left = Workspace::leftovers(host, run)?;
        left.retain(|left| self.unsaved.contains(&(left.item.clone(), left.attempt)));
        let notes = recover::clear_some(run, &self.run.state, host, &|item| self.machine.filters(item), left)?;
        self.unsaved.clear();
        notes.into_iter().for_each(|note| (self.tell)(Progress::Note(note)));
        Ok(())
    }

    /// Records the ends of attempts whose transcripts could not be stored.
    pub(super) fn file_again(&mut self) -> Result<(), Error> {
        let unfiled = std::mem::take(&mut self.unfiled);
        if unfiled.is_empty() { Ok(()) } else { self.reconcile(unfiled) }
    }

    /// Waits after an error that this machine caused; attempts go on meanwhile, and results are
    /// kept. Returns the error after an interruption.
    pub(super) async fn wait_for_machine(
        &mut self,
        shortage: Shortage,
        error: Error,
        interrupt: &mut watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let reason = shortage::describe(&shortage.coded(&in_words(&error)), &self.machine.host.written_folders());
        self.run_short(shortage, &reason);
        while !*interrupt.borrow() {
            let due = self.short.as_ref().map_or_else(Instant::now, |short| short.due);
            tokio::select! {
                () = tokio::time::sleep_until(due.into()) => {}
                _ = interrupt.changed() => break,
            }
            match self.run.recover() {
                Ok(()) => {
                    self.look_again();
                    return Ok(());
                }
                Err(again) if Shortage::from_error(&again).is_some() => self.short.iter_mut().for_each(Short::postpone),
                Err(other) => return Err(other.into()),
            }
        }
        // Perhaps results can be recorded after all.
        if std::mem::replace(&mut self.is_ending, true) || self.run.recover().is_err() {
            return Err(error);
        }
        self.look_again();
        Ok(())
    }
}
