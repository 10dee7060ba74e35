//! Errors of a driver.
use crate::git::refs;
use crate::model::any_error::AnyError;
use crate::model::name::{ItemId, RunId};
use crate::run::operate::{self, coordinate};
use crate::worktree::{capture, workspace};

use crate::engine::{run_lock, slots};

/// Failures to drive a run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0}")]
    Hold(#[from] run_lock::Error),
    #[error("{0}")]
    Slots(#[from] slots::Error),
    #[error("{0}")]
    Run(#[from] operate::Error),
    #[error("{0}")]
    Coordinate(#[from] coordinate::Error),
    #[error(
        "the item {1:?} of the run {0:?} runs, and not here: another machine drives the run without --via, or did so"
    )]
    DrivenElsewhere(RunId, ItemId),
    #[error("cannot remove the stale lock of the run's ref")]
    StaleLock(#[source] std::io::Error),
    #[error("cannot remove the leftovers of an interrupted attempt")]
    Workspace(#[from] workspace::Error),
    #[error("cannot save the work of an interrupted attempt")]
    Salvage(#[source] Box<capture::Error>),
    #[error("cannot create a folder beside the attempts")]
    Folder(#[source] std::io::Error),
    #[error("cannot keep the transcript or the salvaged work of an attempt")]
    Keep(#[source] AnyError),
    #[error("{0}")]
    Ref(#[from] refs::Error),
    #[error("cannot send signs of life to the remote: {0}")]
    Beat(String),
    #[error("cannot write a sign of life")]
    Fence(#[source] AnyError),
    #[error("{0}, and no other driver of the run is alive")]
    Slow(String),
    #[error("the key {1}, with which this driver of the run {0:?} signs, is revoked here")]
    Revoked(RunId, String),
    #[error("nothing is left to run, but the run has not settled: internal error, please report it")]
    Stuck,
}
