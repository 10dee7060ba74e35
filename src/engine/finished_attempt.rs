//! A finished attempt on the driver's side.

use crate::git::store::{KeepGuard, Store};
use crate::model::item_index::ItemIndex;
use crate::worktree::workspace::Workspace;

use super::attempt::{AttemptResult, Ended, Verdict};

/// The result of an attempt, taken over by the driver.
pub(super) struct FinishedAttempt {
    pub(super) at: ItemIndex,
    pub(super) result: AttemptResult,
    /// The worktree, if it was executed in this process.
    pub(super) spent: Option<Workspace>,
    /// Keeps the objects that the result names until refs reach them.
    _kept: KeepGuard,
}

impl FinishedAttempt {
    /// Takes over the result of an attempt and its objects.
    pub(super) fn take_over(store: &Store, at: ItemIndex, ended: Ended) -> Self {
        let Ended { mut result, spent } = ended;
        let guard = KeepGuard::take_over(store, &result.keeps).unwrap_or_else(|error| {
            let verdict = Verdict::from_error("cannot take over the products: ", &error, Verdict::failed);
            (result.verdict, result.products) = (verdict, std::collections::BTreeMap::new());
            KeepGuard::default()
        });
        Self { at, result, spent, _kept: guard }
    }
}
