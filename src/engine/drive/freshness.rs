//! When this driver last knew what the chain of a shared run says.

use std::time::Duration;

use crate::clock::since_boot;
use crate::run::operate::via::Via;

use super::{Driver, Error};

impl Driver<'_> {
    /// Returns true if no other driver can have taken what this driver holds since it last knew.
    ///
    /// A driver that was stopped or suspended beats and reads first. Its knowledge counts from when
    /// a push or read was begun, on a clock that counts suspended time.
    pub(super) fn is_sure(&mut self) -> bool {
        let Some(shared) = &self.shared else { return true };
        let began = since_boot();
        if began.saturating_sub(shared.known) <= shared.heartbeat() * 2 {
            return true;
        }
        // Others wait for longer than this before they take anything over.
        let longest = Duration::from_millis(shared.times.lost_after / 2);
        let is_answered = shared.beats.beat_now(longest);
        if !is_answered && shared.beats.failure().is_some() {
            return false;
        }
        if is_answered {
            if self.refresh().is_err() {
                return false;
            }
            self.rebuild();
        }
        let is_sure = is_answered && since_boot().saturating_sub(began) <= longest;
        if !is_sure {
            self.judge_pushes();
        }
        is_sure
    }

    /// Reads what others appended, after recording what is staged.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        let began = since_boot();
        self.run.refresh()?;
        self.note_read(began);
        Ok(())
    }

    /// Reads what others appended, at this driver's turn.
    pub(super) fn read_at_turn(&mut self) -> Result<(), Error> {
        let began = since_boot();
        self.run.read_at_turn()?;
        self.note_read(began);
        Ok(())
    }

    /// Records that the remote was read, so that its head can be followed.
    fn note_read(&mut self, began: Duration) {
        self.note_known(began);
        self.run.judge_beats();
        if let Some(shared) = &mut self.shared {
            shared.trouble.take_if(|trouble| trouble.is_poisoned);
        }
    }

    /// Records that the chain was known from some moment on.
    pub(super) fn note_known(&mut self, began: Duration) {
        if let Some(shared) = &mut self.shared {
            shared.known = shared.known.max(began);
        }
    }

    /// Returns true if the remote was read so lately that a poll would be too early.
    pub(super) fn has_just_read(&self) -> bool {
        let read = self.run.via().and_then(Via::last_read);
        read.is_some_and(|read| read.elapsed() < self.poll() / 2)
    }
}
