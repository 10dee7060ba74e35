//! The part of a worktree that belongs to one repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use gix::bstr::{BStr, ByteSlice as _};

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::worktree::host::Host;
use crate::worktree::workspace::{Base, GitDir, Submodule, Workspace};

/// The files of the base or of a submodule, with everything needed to capture them.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) host: &'a Host,
    /// Their repository.
    pub(super) store: &'a Store,
    /// The tree that was checked out.
    pub(super) tree: Oid,
    /// The git directory for capturing them.
    pub(super) git_dir: &'a Arc<GitDir>,
    /// Their folder in the worktree; empty for its top.
    top: &'a BStr,
}

impl<'a> Part<'a> {
    /// Returns the files of the base.
    pub(crate) fn new(workspace: &'a Workspace, host: &'a Host, base: &'a Base) -> Self {
        Self { workspace, host, store: &host.store, tree: base.tree, git_dir: &base.capture, top: BStr::new("") }
    }

    /// Returns the files of a submodule.
    pub(super) fn of_submodule(workspace: &'a Workspace, host: &'a Host, submodule: &'a Submodule) -> Self {
        let (store, tree, git_dir) = (&submodule.store, submodule.tree(), &submodule.capture);
        Self { workspace, host, store, tree, git_dir, top: submodule.path.as_bstr() }
    }

    /// Returns true for a submodule.
    pub(super) fn is_submodule(&self) -> bool {
        !self.top.is_empty()
    }

    /// Returns their directory.
    pub(super) fn dir(&self) -> PathBuf {
        let tree = self.workspace.tree();
        if self.top.is_empty() { tree } else { tree.join(OsStr::from_bytes(self.top)) }
    }
}
