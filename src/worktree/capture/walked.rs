//! The result of a walk over a worktree.

use std::sync::Arc;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::State;

use super::excluded::Excluded;
use super::traps::Traps;
use super::walk::below;

/// The findings of a walk over a worktree.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// True if anything may differ from the base, including ignored files.
    pub(crate) changed: bool,
    /// The folders with an entry called `.git` in any spelling, or that entry itself at the top.
    pub(crate) nested: Vec<BString>,
    /// The folders that are repositories. They have no tracked files, unless the worker turned a
    /// tracked folder into one.
    pub(crate) repositories: Vec<BString>,
    /// Attribute files that were changed or removed.
    pub(crate) attributes: Vec<BString>,
    /// Changed files above the size limit of a product.
    pub(crate) large: Vec<BString>,
    /// Tracked files replaced by something that git cannot track.
    pub(crate) odd: Vec<BString>,
    /// Folders that cannot be read.
    pub(crate) closed: Vec<BString>,
    /// Files that would block or exhaust git.
    pub(crate) traps: Traps,
    /// The sizes of the changed files in bytes, including ignored ones.
    pub(crate) sizes: Vec<(u64, BString)>,
    /// Tracked files that no longer exist as files.
    pub(crate) gone: Vec<BString>,
    /// Excluded paths.
    pub(crate) excluded: Excluded,
    pub(super) index: Option<Arc<State>>,
}

impl Walked {
    /// Returns the index used for the comparison.
    pub(super) fn index(&self) -> &State {
        self.index.as_deref().expect("every walk ends with it")
    }

    /// Records a repository that the worker created.
    pub(super) fn repository(&mut self, folder: &BString) {
        self.repositories.push(folder.clone());
        self.changed = true;
    }

    /// Returns the repositories without tracked files, which git must skip. In the others it sees
    /// the files.
    pub(crate) fn untracked_repositories(&self) -> impl Iterator<Item = &BString> {
        self.repositories
            .iter()
            .filter(move |folder| self.index().prefixed_entries_range(below(folder, b"").as_bstr()).is_none())
    }
}
