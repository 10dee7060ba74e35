//! Where the work of an attempt is done, and how it gets into the products.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Job, Verdict};
use crate::engine::product_capture::MOST_NAMED;
use crate::model::digest::Oid;
use crate::model::printable;
use crate::worktree::host::Host;
use crate::worktree::users_work::{self, Before};
use crate::worktree::workspace::Workspace;

/// Where the work of an attempt is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::engine) enum Origin {
    /// In the worktree, by the command.
    Worktree,
    /// In the user's own work tree, whose top this is, by the command.
    Here(PathBuf),
    /// By a commit that was made before. Nothing runs.
    Commit(Oid),
    /// In the worktree that this earlier attempt left. Only the check runs.
    Left(u32),
}

impl Origin {
    /// Returns the top of the user's work tree, if the command runs there.
    pub(super) fn here(&self) -> Option<&Path> {
        match self {
            Self::Here(top) => Some(top),
            Self::Worktree | Self::Commit(_) | Self::Left(_) => None,
        }
    }
}

impl Job {
    /// Reads what [`Job::carry_over`] compares with.
    pub(super) fn before_work(&self, host: &Host, workspace: &Workspace) -> Result<Option<Before>, Verdict> {
        let before = self.spec.origin.here().map(|top| Before::read(host, workspace, top)).transpose();
        before.map_err(|error| failed(&error))
    }

    /// Gives the worktree the work if that was done in the user's own work tree. Returns the files
    /// that are left out, and notes about them and about branches that moved.
    pub(super) fn carry_over(
        &self,
        host: &Host,
        workspace: &Workspace,
        before: Option<&Before>,
    ) -> Result<(Vec<String>, Vec<String>), Verdict> {
        let (Some(top), Some(before)) = (self.spec.origin.here(), before) else { return Ok((Vec::new(), Vec::new())) };
        let left_out = users_work::work_tree(host, workspace, top, before).map_err(|error| failed(&error))?;
        let names: Vec<_> = left_out.iter().map(|path| path.display().to_string()).collect();
        let moved = before.moved(host).map_err(|error| failed(&error))?;
        let moved = moved.iter().map(|change| format!("{}: {change}", self.spec.item));
        let notes = moved
            .chain((!names.is_empty()).then(|| {
                format!(
                    "{}: left out of the patch, as no files or links: {}",
                    self.spec.item,
                    printable::first_of(&names, MOST_NAMED)
                )
            }))
            .collect();
        Ok((names, notes))
    }
}

fn failed(error: &users_work::Error) -> Verdict {
    Verdict::from_error("cannot take the work: ", error, Verdict::hopeless)
}
