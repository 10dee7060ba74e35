//! Why a worktree cannot be made, read or removed.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::digest::Oid;

/// Why a worktree could not be made, read or removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the base commit {0} could not be read")]
    Base(Oid, #[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the base commit {0} tracks `{1}`, which every worktree needs for itself")]
    Reserved(Oid, String),
    #[error("{} is there already, left by an earlier attempt", .0.display())]
    Exists(PathBuf),
    #[error("no worktree can be made in {}", root.display())]
    Root { root: PathBuf, source: io::Error },
    #[error("{} should be a folder of worktrees and is something else; remove it", .0.display())]
    Replaced(PathBuf),
    #[error("the base commit could not be checked out")]
    Checkout(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(
        "the base commit could not be checked out: this partial clone lacks {0}; `git fetch --refetch --no-filter` fetches \
         everything"
    )]
    Partial(String),
    #[error("the base commit cannot be checked out here: {0} collides with another path")]
    Collision(String),
    #[error("handoff.workspace.{0} is set, and a bare repository has no work tree to take anything from")]
    NoWorkTree(&'static str),
    #[error(
        "handoff.workspace.copy or handoff.workspace.link names {0}, which the base commit tracks; name only what it does not"
    )]
    Tracked(String),
    #[error(
        "handoff.workspace.copy or .worktreeinclude names {0}, which leads through a link; copy what lies at its own place"
    )]
    Led(String),
    #[error("the files that .worktreeinclude names could not be listed")]
    Included(#[source] Box<crate::git::program::Error>),
    #[error("the submodule {0} has no commit {1} here; `git submodule update --init -- {0}` fetches it")]
    Submodule(String, Oid),
    #[error("the submodules of the base commit could not be listed")]
    Modules(#[source] Box<crate::git::program::Error>),
    #[error("what the sparse checkout leaves out could not be learnt; handoff.workspace.sparse=false takes all files")]
    Sparse(#[source] Box<crate::git::program::Error>),
    #[error("cannot read the refs of the repository")]
    Refs(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
}

impl Error {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io(path.to_owned(), error)
    }

    /// Returns what makes an I/O error at `path` one of ours.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
