//! How driving a run ends: with a seal, with an interruption, or with an error.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::engine::attempt::Finished;
use crate::engine::event::Progress;
use crate::engine::retain;
use crate::ledger::chain;
use crate::model::causes::in_words;
use crate::run::{self, coordinate};

use super::{Driver, Error, Settled};

/// How long an end of an attempt waits at most for others to be recorded with it.
const LONGEST_GATHERING: Duration = Duration::from_millis(10);

impl Driver<'_> {
    pub(super) async fn interrupted(
        &mut self,
        finished: &mut mpsc::UnboundedReceiver<Finished>,
    ) -> Result<Settled, Error> {
        let batch = self.collect(finished).await;
        self.reconcile(batch)?;
        self.record(&[])?;
        Ok(Settled { interrupted: true, sealed: None })
    }

    /// Ends everything that runs, after an error; the attempts stay recorded as running until the run is driven again.
    ///
    /// A worktree whose work could not be saved stays, and so does one with products that no entry names: whoever drives the
    /// run next saves them.
    pub(super) async fn abandon(&mut self, finished: &mut mpsc::UnboundedReceiver<Finished>) {
        let reports = self.collect(finished).await;
        // The error that led here is the one to tell.
        let filed = retain::file(self.run, &reports).is_ok();
        reports.iter().for_each(|finished| self.tell_notes(finished));
        self.dispose(reports, false, filed);
        let ended = std::mem::take(&mut self.ended);
        self.dispose(ended, false, true);
    }

    /// Waits for the worktrees that are being removed, and removes those that were kept to be used again.
    pub(super) async fn tidy(&mut self) {
        while let Some(removed) = self.removals.join_next().await {
            if let Ok(Some(note)) = removed {
                (self.tell)(Progress::Note(note));
            }
        }
        if let Err(error) = self.machine.host.leave(self.run.id()) {
            (self.tell)(Progress::Note(in_words(&error)));
        }
    }

    /// Waits for what ends at about the same time, no longer than recording it apart would take: what is recorded together costs
    /// as much as one of it.
    pub(super) async fn gather(
        &self,
        first: Finished,
        finished: &mut mpsc::UnboundedReceiver<Finished>,
    ) -> Vec<Finished> {
        let deadline = tokio::time::Instant::now() + self.append.min(LONGEST_GATHERING);
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

    async fn collect(&mut self, finished: &mut mpsc::UnboundedReceiver<Finished>) -> Vec<Finished> {
        for running in self.running.values() {
            running.cancel.send_replace(true);
        }
        let mut batch = Vec::new();
        while batch.len() < self.running.len() {
            match finished.recv().await {
                Some(report) => batch.push(report),
                None => break,
            }
        }
        batch
    }

    /// Seals the run if it is over; returns nothing if somebody else appended first and it is not.
    pub(super) fn finish(&mut self) -> Result<Option<Settled>, Error> {
        let state = &self.run.state;
        let seals_itself = state.seals_itself() && !coordinate::has_stopped_short(self.run.store(), state)?;
        let over = state.is_ended() || seals_itself;
        let settled = |sealed| Settled { interrupted: false, sealed };
        let before = match (over, self.machine.close) {
            _ if self.run.state.sealed => return Ok(Some(settled(None))),
            (true, _) => None,
            (false, true) => Some(run::closed("closed when it had settled")),
            (false, false) => return Ok(Some(settled(None))),
        };
        match self.run.seal(before) {
            Ok(sealed) => Ok(Some(settled(Some(sealed)))),
            // What came in between may be a document that a rule waits for.
            Err(run::Error::Chain(chain::Error::LostRace(_))) => {
                self.catch_up()?;
                Ok(None)
            }
            Err(other) => Err(other.into()),
        }
    }
}
