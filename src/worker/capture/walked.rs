//! The result of a walk over a worktree.

use std::sync::Arc;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::State;

use super::traps::Traps;
use super::walk::below;

/// What a walk over a worktree found.
#[derive(Debug, Default)]
pub(in crate::worker) struct Walked {
    /// Whether anything may differ from the base; ignored files count too.
    pub(in crate::worker) changed: bool,
    /// The folders that hold something called `.git`, in any spelling, or that thing itself where the folder is the top.
    pub(in crate::worker) nested: Vec<BString>,
    /// The folders that are repositories of their own, without a tracked file in them unless the worker made one of a tracked folder.
    pub(in crate::worker) repositories: Vec<BString>,
    /// Files that tell git how to read others, and were changed or are gone.
    pub(in crate::worker) attributes: Vec<BString>,
    /// Changed files that are larger than a product may be.
    pub(in crate::worker) large: Vec<BString>,
    /// Tracked files in whose place there is now what git cannot keep.
    pub(in crate::worker) odd: Vec<BString>,
    /// Folders that cannot be read.
    pub(in crate::worker) closed: Vec<BString>,
    /// What git would open by its name to learn something, and be held up by.
    pub(in crate::worker) traps: Traps,
    /// How many bytes the changed files have, each of them once, those of ignored files included.
    pub(in crate::worker) sizes: Vec<(u64, BString)>,
    /// Tracked files that are not there any more, as files.
    pub(in crate::worker) gone: Vec<BString>,
    pub(super) index: Option<Arc<State>>,
}

impl Walked {
    /// Returns the index that the worktree was compared with.
    pub(super) fn index(&self) -> &State {
        self.index.as_deref().expect("every walk ends with it")
    }

    /// Notes a repository that the worker made.
    pub(super) fn repository(&mut self, folder: &BString) {
        self.repositories.push(folder.clone());
        self.changed = true;
    }

    /// Returns the repositories that git is to pass over: those in whose folders nothing is tracked. Of the others it sees the files.
    pub(in crate::worker) fn untracked_repositories(&self) -> impl Iterator<Item = &BString> {
        let is_tracked = |folder: &BString| self.index().prefixed_entries_range(below(folder, b"").as_bstr()).is_some();
        self.repositories.iter().filter(move |folder| !is_tracked(folder))
    }
}
