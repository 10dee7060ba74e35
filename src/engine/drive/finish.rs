//! Ends the driving of a run: with a seal, after an interruption, or after an error.

use std::time::Duration;

use crate::engine::event::Progress;
use crate::engine::finished_attempt::FinishedAttempt;
use crate::engine::record::left;
use crate::engine::transcript_refs;
use crate::ledger::chain;
use crate::model::causes::in_words;
use crate::model::role::Role;
use crate::run::operate::{self, coordinate};
use tokio::sync::{mpsc, watch};

use super::{Driver, Error, Settled};

/// The longest time that an attempt's end waits for others to be recorded with it.
const MAX_WAIT: Duration = Duration::from_millis(10);

impl Driver<'_> {
    pub(super) async fn interrupted(
        &mut self,
        finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>,
    ) -> Result<Settled, Error> {
        let batch = self.end_all(finished).await;
        self.reconcile(batch)?;
        let back = self.hand_back_all("the driver was interrupted");
        self.record(&back)?;
        Ok(Settled { interrupted: true, sealed: None })
    }

    /// Ends all attempts after an error. They stay recorded as running until the run is driven
    /// again.
    ///
    /// Worktrees with unsaved work or unrecorded products stay; the next driver salvages them.
    pub(super) async fn abandon(&mut self, finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>) {
        let reports = self.end_all(finished).await;
        // The first error is reported, not this one.
        let filed = transcript_refs::add_all(self.run, &reports).is_ok();
        reports.iter().for_each(|report| self.tell_notes(report));
        self.dispose(reports, false, filed);
        let ended = std::mem::take(&mut self.ended);
        self.dispose(ended, false, true);
    }

    /// Waits for removals, and removes the worktrees that were kept for reuse.
    pub(super) async fn tidy(&mut self) {
        while let Some(removed) = self.removals.join_next().await {
            if let Ok(Some(note)) = removed {
                (self.tell)(Progress::Note(note));
            }
        }
        let host = &self.machine.host;
        // Another driver of an open run may continue the sessions.
        let forgotten = if self.run.state.sealed { host.forget_sessions(self.run.id()) } else { Ok(()) };
        if let Err(error) = forgotten.and_then(|()| host.leave(self.run.id())) {
            (self.tell)(Progress::Note(in_words(&error)));
        }
    }

    /// Waits for attempts that end at about the same time, because entries that are recorded
    /// together cost as much as one. It waits no longer than one recording takes.
    pub(super) async fn collect_more(
        &self,
        first: FinishedAttempt,
        finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>,
    ) -> Vec<FinishedAttempt> {
        let deadline = tokio::time::Instant::now() + self.append_time.min(MAX_WAIT);
        let mut batch = vec![first];
        while batch.len() < self.running.len() {
            match tokio::time::timeout_at(deadline, finished.recv()).await {
                Ok(Some(next)) => batch.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        while let Ok(next) = finished.try_recv() {
            batch.push(next);
        }
        batch
    }

    /// Returns how long a driver of a shared run waits before it may push, or `None` if it may, or
    /// has nothing to push.
    pub(super) fn pause_before_push(&self) -> Option<Duration> {
        let (shared, via) = (self.shared.as_ref()?, self.run.via()?);
        if !self.has_to_push() {
            return None;
        }
        let is_alone = self.running.is_empty();
        let gathering = if is_alone { Duration::ZERO } else { shared.waits.gathering(via.push_time()) };
        Some(via.due().max(gathering)).filter(|pause| !pause.is_zero())
    }

    /// Returns true if there are entries to push, or may be claims for a free slot.
    pub(super) fn has_to_push(&self) -> bool {
        self.run.has_staged()
            || (self.schedule.eligible() > 0
                && !self.is_slow()
                && !self.holds_off()
                && self.short.is_none()
                && self.occupied() < self.slots_of_run())
    }

    /// Returns the number of slots that are taken by what runs here, and by claims that wait.
    fn occupied(&self) -> usize {
        self.running.len() + self.shared.as_ref().map_or(0, |shared| shared.ahead.len())
    }

    /// Gathers the ends of attempts while the next push has to wait.
    pub(super) async fn gather(
        &mut self,
        pause: Duration,
        finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>,
        interrupt: &mut watch::Receiver<bool>,
    ) -> Result<(), Error> {
        tokio::select! {
            Some(first) = finished.recv() => {
                let batch = self.collect_more(first, finished).await;
                self.reconcile(batch)
            }
            () = tokio::time::sleep(pause) => Ok(()),
            _ = interrupt.changed() => Ok(()),
        }
    }

    async fn end_all(&mut self, finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>) -> Vec<FinishedAttempt> {
        for running in self.running.values() {
            running.cancel.send_replace(true);
        }
        let mut batch = std::mem::take(&mut self.unfiled);
        while batch.len() < self.running.len() {
            match finished.recv().await {
                Some(report) => batch.push(report),
                None => break,
            }
        }
        batch
    }

    /// Seals the run if it is over. Returns `None` if another writer appended first and it no
    /// longer is.
    pub(super) fn finish(&mut self) -> Result<Option<Settled>, Error> {
        let state = &self.run.state;
        let seals_itself = state.seals_itself() && !coordinate::has_stopped_short(self.run.store(), state)?;
        let over = state.is_ended() || seals_itself;
        if self.shared.is_some() && !self.may_seal() {
            let note = self.who_seals();
            (self.tell)(Progress::Note(note));
            return Ok(Some(Settled { interrupted: false, sealed: None }));
        }
        let before = match (over, self.machine.close) {
            _ if self.run.state.sealed => return Ok(Some(Settled { interrupted: false, sealed: None })),
            (true, _) => None,
            // Its work is still to be taken.
            (false, true) if left::left_by(&self.machine.host, self.run.id(), &self.run.state)?.is_some() => {
                return Ok(Some(Settled { interrupted: false, sealed: None }));
            }
            (false, true) => Some(operate::closed("closed when it had settled")),
            (false, false) => return Ok(Some(Settled { interrupted: false, sealed: None })),
        };
        match self.run.seal(before) {
            Ok(sealed) => Ok(Some(Settled { interrupted: false, sealed: Some(sealed) })),
            // A new document may satisfy a rule.
            Err(operate::Error::Chain(chain::Error::LostRace(_))) => {
                self.catch_up()?;
                Ok(None)
            }
            Err(other) => Err(other.into()),
        }
    }

    fn may_seal(&self) -> bool {
        self.run.state.keys.has(&self.run.writer().signer.fingerprint(), Role::Seal)
    }

    /// Says which keys may seal a run that only they can.
    fn who_seals(&self) -> String {
        let sealers = self.run.state.keys.iter().filter(|(_, roles)| roles.contains(&Role::Seal));
        let sealers: Vec<&str> = sealers.map(|(key, _)| key).collect();
        format!("the run has settled, and this key may not seal it; these may: {}", sealers.join(", "))
    }
}
