//! Validates attempts against the plan.

use super::RunState;
use crate::model::entry::{Exit, Grade, ItemReconciled, Outcome};
use crate::model::illegal::Illegal;
use crate::model::item_index::ItemIndex;

impl RunState {
    /// Validates that the plan allows another attempt, counted from an operator's latest retry,
    /// without driver crashes.
    ///
    /// Without a limit in the plan, the driver decides.
    pub(super) fn expect_attempt_left(&self, at: ItemIndex) -> Result<(), Illegal> {
        let item = self.graph.item(at);
        let tried = self.items[at].attempts - self.items[at].granted_at;
        match item.max_attempts {
            Some(most) if tried >= most => Err(Illegal::NoAttemptLeft(item.id.clone(), most)),
            _ => Ok(()),
        }
    }

    /// Validates that a done item made every declared product, and that its process succeeded.
    pub(super) fn expect_kept(&self, at: ItemIndex, e: &ItemReconciled) -> Result<(), Illegal> {
        self.expect_one_end(at, e.exit.as_ref())?;
        let is_claimed = e.status == Outcome::Done && self.graph.item(at).is_claimed();
        if e.grade != is_claimed.then_some(Grade::Claimed) {
            return Err(Illegal::WrongGrade(e.item.clone()));
        }
        if e.status != Outcome::Done {
            return Ok(());
        }
        let item = self.graph.item(at);
        if e.exit.is_some_and(|exit| exit.code != Some(0)) {
            return Err(Illegal::WrongExit(item.id.clone()));
        }
        match item.promised().find(|key| !e.products.contains_key(key)) {
            Some(missing) => Err(Illegal::NotProduced(item.id.clone(), missing)),
            None => Ok(()),
        }
    }

    /// Validates that a process ended with either a code or a signal.
    pub(super) fn expect_one_end(&self, at: ItemIndex, exit: Option<&Exit>) -> Result<(), Illegal> {
        match exit {
            Some(exit) if exit.code.is_some() == exit.signal.is_some() => {
                Err(Illegal::WrongExit(self.graph.item(at).id.clone()))
            }
            _ => Ok(()),
        }
    }
}
