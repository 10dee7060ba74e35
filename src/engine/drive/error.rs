//! Errors of a driver.
use crate::git::refs;
use crate::model::any_error::AnyError;
use crate::model::name::{ItemId, RunId};
use crate::run::operate::{self, coordinate};
use crate::worktree::{capture, workspace};

use crate::engine::{run_lock, slots};

errors! {
    /// Failures to drive a run.
    #[derive(Debug, thiserror::Error)] pub enum Error = "run";
    DrivenElsewhere(RunId, ItemId) "held" 5:
        "the item {1:?} of the run {0:?} runs, and not here: another machine drives the run without --via, or did so";
    StaleLock(#[source] std::io::Error): "cannot remove the stale lock of the run's ref";
    Workspace(#[from] workspace::Error): "cannot remove the leftovers of an interrupted attempt";
    Salvage(#[source] Box<capture::Error>): "cannot save the work of an interrupted attempt";
    Folder(#[source] std::io::Error): "cannot create a folder beside the attempts";
    Keep(#[source] AnyError): "cannot keep the transcript or the salvaged work of an attempt";
    Beat(String): "cannot send signs of life to the remote: {0}";
    Fence(#[source] AnyError): "cannot write a sign of life";
    Slow(String) "slow-remote": "{0}, and no other driver of the run is alive";
    Revoked(RunId, String) "revoked": "the key {1}, with which this driver of the run {0:?} signs, is revoked here";
    Stuck "defect" 70: "nothing is left to run, but the run has not settled: internal error, please report it";
    #[from] Run(operate::Error), Coordinate(coordinate::Error);
    #[from "run"] Hold(run_lock::Error), Slots(slots::Error), Ref(refs::Error);
}
