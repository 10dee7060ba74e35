//! Says where the checks of a run passed, and what protected them.

use std::collections::BTreeSet;

use crate::git::store::Store;
use crate::model::entry::{Event, VerifiedBy};
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::protected::VerifyIn;
use crate::model::state::Phase;
use crate::model::state::checks::{in_worktree_in_words, unprotected_in_words};

use super::show;
use super::view::View;

impl View {
    /// Returns the items whose check passed in the worktree that their worker left. Items whose
    /// manifest is not here are left out.
    pub fn checked_in_worktree(&self, store: &Store) -> BTreeSet<ItemIndex> {
        let mut passed = BTreeSet::new();
        for link in &self.links {
            let Event::ItemReconciled(end) = &link.entry.event else { continue };
            let Some(at) = self.state.graph.position(&end.item) else { continue };
            let is_passed = end.verify.is_some_and(|verify| verify.passed && verify.by == VerifiedBy::Command);
            if is_passed {
                passed.insert(at);
            } else {
                passed.remove(&at);
            }
        }
        passed.retain(|at| self.state.items[*at].phase == Phase::Done && self.is_checked_in_worktree(store, *at));
        passed
    }

    /// Returns true if the check of an item runs in its worktree.
    fn is_checked_in_worktree(&self, store: &Store, at: ItemIndex) -> bool {
        let product = self.state.items[at].manifest.as_ref();
        let manifest = product.and_then(|product| show::manifest(store, product).ok().flatten());
        manifest.is_some_and(|manifest| manifest.verify_in == VerifyIn::Worktree)
    }

    /// Returns the sentences about checks without protected files, and about checks in the
    /// worktrees of workers, of these items or of all. Every screen that shows a result as green
    /// prints them.
    pub fn check_remarks(&self, store: &Store, items: Option<&[ItemIndex]>) -> Vec<String> {
        let total = items.map_or_else(|| self.state.items.indexed().count(), <[_]>::len) as u64;
        let bare = self
            .state
            .items
            .indexed()
            .filter(|(at, item)| item.unprotected && items.is_none_or(|items| items.contains(at)));
        let bare: Vec<ItemId> = bare.map(|(at, _)| self.state.graph.item(at).id.clone()).collect();
        let inside: Vec<ItemId> = self
            .checked_in_worktree(store)
            .into_iter()
            .filter(|at| items.is_none_or(|items| items.contains(at)))
            .map(|at| self.state.graph.item(at).id.clone())
            .collect();
        unprotected_in_words(&bare, total).into_iter().chain(in_worktree_in_words(&inside, total)).collect()
    }
}
