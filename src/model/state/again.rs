//! Retries.

use super::{Illegal, Phase, RunState};
use crate::model::entry::{Again, ItemEnded};
use crate::model::item_index::ItemIndex;

impl RunState {
    /// Applies a failed attempt that another follows.
    pub(in crate::model) fn retry(&mut self, e: &ItemEnded) -> Result<(), Illegal> {
        let at = self.find(&e.item)?;
        if e.reason != Again::Failure || e.taker.is_some() || e.because.is_some() {
            return Err(Illegal::WrongReason(e.item.clone()));
        }
        self.expect_attempt(at, e.attempt, false)?;
        self.expect_holder(at, e.driver.as_ref())?;
        self.expect_one_end(at, e.exit.as_ref())?;
        self.wait_again(at, e);
        Ok(())
    }

    /// Applies an attempt lost to a crash, or an operator's retry.
    pub(in crate::model) fn requeue(&mut self, e: &ItemEnded) -> Result<(), Illegal> {
        let at = self.find(&e.item)?;
        self.expect_one_end(at, e.exit.as_ref())?;
        if e.because.is_some() != (e.reason == Again::Lost) || (e.taker.is_some() && e.reason != Again::Lost) {
            return Err(Illegal::WrongReason(e.item.clone()));
        }
        match e.reason {
            Again::Crash | Again::Lost => {
                self.expect_attempt(at, e.attempt, false)?;
                self.expect_holder(at, e.driver.as_ref())?;
                if e.reason == Again::Lost {
                    self.expect_taker(at, e)?;
                }
                self.wait_again(at, e);
                self.items[at].granted_at += 1;
                self.items[at].crashes += 1;
            }
            Again::Operator => {
                // From `running`: an operator interrupted the driver, which does not count against
                // the item.
                let from = [Phase::Running, Phase::Failed, Phase::Skipped, Phase::Cancelled];
                self.expect_phase(at, &from, e.attempt)?;
                if e.driver.is_some() {
                    self.expect_holder(at, e.driver.as_ref())?;
                }
                if self.cancelled.is_some() || self.closed.is_some() {
                    return Err(Illegal::AfterEnd(e.item.clone()));
                }
                if self.is_superseded(at) {
                    return Err(Illegal::Superseded(e.item.clone()));
                }
                self.open += usize::from(self.items[at].phase.is_terminal());
                self.wait_again(at, e);
                self.items[at].granted_at = self.items[at].attempts;
                self.items[at].crashes = 0;
                self.items[at].decided_by = None;
            }
            Again::Failure => return Err(Illegal::WrongReason(e.item.clone())),
        }
        Ok(())
    }

    fn wait_again(&mut self, at: ItemIndex, e: &ItemEnded) {
        self.release(at);
        let state = &mut self.items[at];
        state.phase = Phase::Waiting;
        state.not_before = e.not_before;
        state.reason.clone_from(&e.detail);
        state.summary = None;
    }
}
