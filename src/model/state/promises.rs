//! What the plan promises of an item, held against what is said of its attempts.

use super::RunState;
use crate::model::entry::{Exit, ItemReconciled, Outcome};
use crate::model::illegal::Illegal;

impl RunState {
    /// Checks that the plan allows the item another attempt, counted from when an operator last asked for it; what a crash of the
    /// driver took is not the item's fault and does not count.
    ///
    /// Where it says nothing, whoever drives the run decides how many there are.
    pub(super) fn expect_attempt_left(&self, at: usize) -> Result<(), Illegal> {
        let item = self.graph.item(at);
        let tried = self.items[at].attempts - self.items[at].granted_at;
        match item.max_attempts {
            Some(most) if tried >= most => Err(Illegal::NoAttemptLeft(item.id.clone(), most)),
            _ => Ok(()),
        }
    }

    /// Checks that an item that is done made everything that it declares, and that its process ended as one that succeeds.
    pub(super) fn expect_kept(&self, at: usize, e: &ItemReconciled) -> Result<(), Illegal> {
        self.expect_one_end(at, e.exit.as_ref())?;
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

    /// Checks that a process ended with a code or by a signal, and not with both.
    pub(super) fn expect_one_end(&self, at: usize, exit: Option<&Exit>) -> Result<(), Illegal> {
        match exit {
            Some(exit) if exit.code.is_some() == exit.signal.is_some() => {
                Err(Illegal::WrongExit(self.graph.item(at).id.clone()))
            }
            _ => Ok(()),
        }
    }
}
