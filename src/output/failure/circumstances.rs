//! Hints that depend on the state of the repository.

use git_handoff::git::history;
use git_handoff::git::store::Store;
use git_handoff::model::hints;

use super::Failure;

/// Hints that stash changes.
const STASHES: [&str; 4] = ["stash", "stash_or_branch", "record_dirty", "unmark_and_stash"];

/// Files in a work tree's git directory while an operation of git is not finished.
const UNFINISHED: [&str; 5] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"];

impl Failure {
    /// Replaces a hint that cannot help in this repository: a stash ends an unfinished merge or
    /// fails, and a shallow clone lists no commit that it lacks.
    pub(crate) fn fitting(mut self, store: impl FnOnce() -> Option<Store>) -> Self {
        let name = self.hint.as_ref().map_or("", |hint| hint.name());
        let is_stash = STASHES.contains(&name);
        if !is_stash && name != "commits" {
            return self;
        }
        let Some(store) = store() else { return self };
        if is_stash && UNFINISHED.iter().any(|state_file| store.git_dir().join(state_file).exists()) {
            self.hint = Some(hints::finish());
        } else if !is_stash && history::is_shallow(&store) {
            self.hint = Some(hints::unshallow());
        }
        self
    }
}
