//! The errors of worktrees.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::digest::Oid;

errors! {
    /// Why a worktree cannot be created, read or removed.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Base(Oid, #[source] Box<dyn std::error::Error + Send + Sync>): "cannot read the base commit {0}";
    Reserved(Oid, String): "the base commit {0} tracks `{1}`, which is reserved in every worktree";
    Exists(PathBuf): "{} already exists, left by an earlier attempt" [.0.display()];
    Root { root: PathBuf, source: io::Error }: "cannot create a worktree in {}" [root.display()];
    Replaced(PathBuf): "{} should be a folder of worktrees but is something else; remove it" [.0.display()];
    StillRunning: "a process of the item may still run";
    Inputs(PathBuf): "the worker replaced the folder around its inputs, {}" [.0.display()];
    Checkout(#[source] Box<dyn std::error::Error + Send + Sync>): "cannot check out the base commit";
    Partial(String):
        "cannot check out the base commit: this partial clone lacks {0}; `git fetch --refetch --no-filter` fetches \
         everything";
    Collision(String): "the base commit cannot be checked out here: {0} collides with another path";
    NoWorkTree(&'static str): "handoff.workspace.{0} is set, but a bare repository has no work tree to copy from";
    Tracked(String):
        "handoff.workspace.copy or handoff.workspace.link names {0}, which the base commit tracks; name only untracked files";
    Led(String): "handoff.workspace.copy or .worktreeinclude names {0}, which leads through a link; name the real path";
    Included(#[source] Box<crate::git::program::Error>): "cannot list the files of .worktreeinclude";
    Submodule(String, Oid): "the submodule {0} has no commit {1} here; `git submodule update --init -- {0}` fetches it";
    Modules(#[source] Box<crate::git::program::Error>): "cannot list the submodules of the base commit";
    Sparse(#[source] Box<crate::git::program::Error>):
        "cannot list the files that the sparse checkout excludes; handoff.workspace.sparse=false checks out all files";
    Annex(String): "git-annex keeps contents of files beside this repository ({0}), which workers cannot work with";
    Refs(#[source] Box<dyn std::error::Error + Send + Sync>): "cannot read the refs of the repository";
    Io(PathBuf, #[source] io::Error): "{} could not be read or written" [.0.display()];
}

impl Error {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io(path.to_owned(), error)
    }

    /// Returns a function that wraps an I/O error at `path`.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
