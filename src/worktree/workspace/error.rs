//! The errors of worktrees.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::digest::Oid;

/// Why a worktree cannot be created, read or removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot read the base commit {0}")]
    Base(Oid, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the base commit {0} tracks `{1}`, which is reserved in every worktree")]
    Reserved(Oid, String),
    #[error("{} already exists, left by an earlier attempt", .0.display())]
    Exists(PathBuf),
    #[error("cannot create a worktree in {}", root.display())]
    Root { root: PathBuf, source: io::Error },
    #[error("{} should be a folder of worktrees but is something else; remove it", .0.display())]
    Replaced(PathBuf),
    #[error("a process of the item may still run")]
    StillRunning,
    #[error("the worker replaced the folder around its inputs, {}", .0.display())]
    Inputs(PathBuf),
    #[error("cannot check out the base commit")]
    Checkout(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "cannot check out the base commit: this partial clone lacks {0}; `git fetch --refetch --no-filter` fetches \
         everything"
    )]
    Partial(String),
    #[error("the base commit cannot be checked out here: {0} collides with another path")]
    Collision(String),
    #[error("handoff.workspace.{0} is set, but a bare repository has no work tree to copy from")]
    NoWorkTree(&'static str),
    #[error(
        "handoff.workspace.copy or handoff.workspace.link names {0}, which the base commit tracks; name only untracked files"
    )]
    Tracked(String),
    #[error("handoff.workspace.copy or .worktreeinclude names {0}, which leads through a link; name the real path")]
    Led(String),
    #[error("cannot list the files of .worktreeinclude")]
    Included(#[source] Box<crate::git::program::Error>),
    #[error("the submodule {0} has no commit {1} here; `git submodule update --init -- {0}` fetches it")]
    Submodule(String, Oid),
    #[error("cannot list the submodules of the base commit")]
    Modules(#[source] Box<crate::git::program::Error>),
    #[error(
        "cannot list the files that the sparse checkout excludes; handoff.workspace.sparse=false checks out all files"
    )]
    Sparse(#[source] Box<crate::git::program::Error>),
    #[error("git-annex keeps contents of files beside this repository ({0}), which workers cannot work with")]
    Annex(String),
    #[error("cannot read the refs of the repository")]
    Refs(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
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
