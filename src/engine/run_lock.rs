//! The lock that only one driver of a run holds. The system releases it when the process dies.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::no_locks::NoLocks;
use crate::git::trace;
use crate::model::name::RunId;
use crate::run::query::driver_lock::{open, path};

/// How often to retry a lock whose holder is not known to be alive, or a person's command.
const RETRIES: usize = 1000;
/// How long to wait between two of them.
const PAUSE: Duration = Duration::from_millis(10);

/// The lock on a run, held until it is dropped.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Locks a run, or names the process that holds the lock.
    ///
    /// The lock file stays behind: if it were removed, two processes could each lock a file of the
    /// same name.
    pub fn take(common_dir: &Path, run: &RunId) -> Result<Self, Error> {
        let path = path(common_dir, run);
        let io = |source| Error::Io { path: path.clone(), source };
        let mut file = open(&path).map_err(io)?;
        let mut retries = RETRIES;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(io(NoLocks::explain(&path, source))),
            }
            let mut holder = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut holder)).map_err(io)?;
            let alive = Some(holder.trim()).filter(|holder| is_alive(holder));
            // A new holder has yet to write its name. After a kill, a child between fork and exec
            // can keep the lock for a moment, and a command for as long as it pushes.
            if retries > 0 && alive.is_none() {
                if retries == RETRIES {
                    trace::waits_for(path.display());
                }
                retries -= 1;
                std::thread::sleep(PAUSE);
                continue;
            }
            let holder_name = alive.unwrap_or("another process").to_owned();
            return Err(Error::Held { run: run.clone(), holder: holder_name });
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "process {}", std::process::id()).map_err(io)?;
        Ok(Self { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A command that holds the lock next does not write its name.
        let _ = self.file.set_len(0);
    }
}

/// Removes the lock file of a deleted run. The caller holds the lock.
pub fn forget(common_dir: &Path, run: &RunId) {
    let _ = fs::remove_file(path(common_dir, run));
}

/// Returns the process that drives a run, as its lock file names it, or `None` if the run has no
/// driver.
///
/// This takes the lock for a moment if it is free, so call it only where a driver is expected.
pub fn holder(common_dir: &Path, run: &RunId) -> Option<String> {
    let mut file = File::open(path(common_dir, run)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut holder = String::new();
    file.read_to_string(&mut holder).ok()?;
    Some(holder.trim().to_owned()).filter(|holder| is_alive(holder))
}

/// Returns true if the process that a lock file names is alive.
fn is_alive(holder: &str) -> bool {
    holder.strip_prefix("process ").is_some_and(|id| Path::new("/proc").join(id).exists())
}

errors! {
    /// Failures to lock a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Held { run: RunId, holder: String }: "the run {run:?} is being driven by {holder}";
    Io { path: PathBuf, source: std::io::Error }: "cannot use the lock file {}" [path.display()];
}
