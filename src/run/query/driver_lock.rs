//! The lock file of a run: where it is, and whether a driver of this repository holds it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::model::name::RunId;

/// The folder of the lock files of runs, below the git directory.
const FOLDER: &str = "handoff/locks/runs";

/// Returns the lock file of a run.
pub fn path(common_dir: &Path, run: &RunId) -> PathBuf {
    common_dir.join(FOLDER).join(run.encoded())
}

/// Returns true if a driver of this repository drives a run.
///
/// This takes the lock for a moment if it is free. A driver that starts then tries again.
pub fn is_driven_here(common_dir: &Path, run: &RunId) -> bool {
    let file = File::open(path(common_dir, run));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
