//! The lock file of a run. Its driver holds the lock alone, commands that must not meet a driver
//! hold it together.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::git::no_locks::NoLocks;
use crate::model::name::RunId;

/// The folder of the lock files of runs, below the git directory.
const FOLDER: &str = "handoff/locks/runs";

/// Returns the lock file of a run.
pub fn path(common_dir: &Path, run: &RunId) -> PathBuf {
    common_dir.join(FOLDER).join(run.encoded())
}

/// Opens the lock file of a run, and makes it if there is none.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Returns true if a driver of this repository drives a run.
///
/// This takes the lock for a moment if it is free. A driver that starts then tries again.
pub fn is_driven_here(common_dir: &Path, run: &RunId) -> bool {
    let file = File::open(path(common_dir, run));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// No driver of this repository begins to drive the run until this is dropped.
pub struct NoDriver(#[expect(dead_code, reason = "it holds the lock")] File);

impl NoDriver {
    /// Keeps drivers out, or returns `None` if a driver of this repository drives the run.
    pub fn keep(common_dir: &Path, run: &RunId) -> io::Result<Option<Self>> {
        let path = path(common_dir, run);
        let file = open(&path)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(NoLocks::explain(&path, error)),
        }
    }
}
