//! Records what happened: ends of attempts, and everything that was decided.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::clock::since_boot;
use crate::engine::attempt::Verdict;
use crate::engine::end_entries::Batch;
use crate::engine::event::Progress;
use crate::engine::finished_attempt::FinishedAttempt;
use crate::engine::shortage::Shortage;
use crate::engine::{command, transcript_refs};
use crate::model::state::Phase;
use crate::run::operate::NewEntry;

use super::{Driver, Error, remote_trouble};

impl Driver<'_> {
    /// Skips items that wait for a lost item, which happens if two writers append without seeing
    /// each other.
    pub(super) fn sweep(&mut self) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.sweep(&self.run.state);
        self.stage(&batch.entries)
    }

    /// Stages the ends of attempts, to be recorded before the next dispatch.
    ///
    /// A worktree is removed only when the end of its attempt is recorded, because salvage needs it
    /// until then.
    pub(super) fn reconcile(&mut self, reports: Vec<FinishedAttempt>) -> Result<(), Error> {
        // Transcripts and salvaged work come first: they can be lost, but no entry must refer to
        // something that is missing.
        if let Err(error) = transcript_refs::add_all(self.run, &reports) {
            if Shortage::from_error(&*error).is_some() {
                self.unfiled = reports;
            } else {
                self.dispose(reports, false, false);
            }
            return Err(Error::Keep(error));
        }
        let mut batch = Batch::default();
        for finished in &reports {
            self.running.remove(&finished.at);
            self.tell_notes(finished);
            self.note_shortage(finished);
            if let (true, Verdict::Crashed(why)) =
                (self.holds(finished.at, finished.result.attempt), &finished.result.verdict)
            {
                self.crash(&mut batch, finished.at, why);
            } else if self.holds(finished.at, finished.result.attempt) {
                let now = self.run.writer().clock.now();
                let left = command::attempts_left(&self.run.state, finished.at, &self.machine.config);
                batch.finished(&self.run.state, finished, left, now);
            } else {
                // The attempt was cancelled, so its end is recorded already. Only now is it over.
                self.schedule.ended(&self.run.state, finished.at);
            }
        }
        self.shared.iter_mut().for_each(|shared| shared.waits.ended(&reports));
        self.ended.extend(reports);
        self.stage(&batch.entries)?;
        // If other writers had ended these items already, there is nothing to record.
        if self.run.has_staged() { Ok(()) } else { self.record(&[]) }
    }

    pub(super) fn tell_notes(&mut self, finished: &FinishedAttempt) {
        finished.result.notes.iter().for_each(|note| (self.tell)(Progress::Note(note.clone())));
    }

    /// Applies entries to the state and the schedule. The next call of `record` records them.
    pub(super) fn stage(&mut self, entries: &[NewEntry]) -> Result<(), Error> {
        self.run.stage(entries)?;
        // A reused item is dispatched and ends at once.
        let about: BTreeSet<_> = entries.iter().filter_map(NewEntry::item).collect();
        for item in about {
            let at = self.run.state.graph.position(item).expect("a recorded item is in the plan");
            if self.run.state.items[at].phase != Phase::Running {
                self.schedule.ended(&self.run.state, at);
            }
        }
        Ok(())
    }

    /// Records these entries after the staged ones.
    pub(super) fn record(&mut self, entries: &[NewEntry]) -> Result<(), Error> {
        let (started, sent) = (Instant::now(), since_boot());
        let recorded = self.stage(entries).and_then(|()| Ok(self.run.publish()?));
        if recorded
            .as_ref()
            .is_err_and(|error| remote_trouble::is_of_remote(error) || Shortage::from_error(error).is_some())
        {
            // Results are kept until the remote, or this machine, can record them.
            return recorded.map(drop);
        }
        let ended = std::mem::take(&mut self.ended);
        self.dispose(ended, recorded.is_ok(), true);
        let links = recorded?;
        if !links.is_empty() {
            self.append_time = started.elapsed();
            self.note_accepted(sent);
        }
        links.iter().for_each(|link| (self.tell)(Progress::Recorded(link, &self.run.state)));
        self.catch_up()
    }
}
