//! Where the work of an attempt is done, and how it gets into the products.

use std::path::{Path, PathBuf};

use super::{Job, Verdict};
use crate::model::digest::Oid;
use crate::worktree::carry::{self, OutputsBefore};
use crate::worktree::host::Host;
use crate::worktree::workspace::Workspace;

/// Where the work of an attempt is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Origin {
    /// In the worktree, by the command.
    Worktree,
    /// In the user's own work tree, whose top this is, by the command.
    Here(PathBuf),
    /// By a commit that was made before. Nothing runs.
    Commit(Oid),
}

/// The state before the work, for [`Job::carry_over`].
pub(super) struct Before(Option<OutputsBefore>);

impl Origin {
    /// Returns the top of the user's work tree, if the command runs there.
    pub(super) fn here(&self) -> Option<&Path> {
        match self {
            Self::Here(top) => Some(top),
            Self::Worktree | Self::Commit(_) => None,
        }
    }
}

impl Job {
    /// Reads what [`Job::carry_over`] compares with.
    pub(super) fn before_work(&self, host: &Host) -> Result<Before, Verdict> {
        let before = self.origin.here().map(|top| OutputsBefore::read(host, top)).transpose();
        before.map(Before).map_err(|error| failed(&error))
    }

    /// Gives the worktree the work if that was done elsewhere.
    pub(super) fn carry_over(&self, host: &Host, workspace: &Workspace, before: &Before) -> Result<(), Verdict> {
        let carried = match (&self.origin, &before.0) {
            (Origin::Here(top), Some(before)) => carry::work_tree(host, workspace, top, before),
            _ => Ok(()),
        };
        carried.map_err(|error| failed(&error))
    }
}

fn failed(error: &carry::Error) -> Verdict {
    Verdict::from_error("cannot take the work: ", error, Verdict::hopeless)
}
