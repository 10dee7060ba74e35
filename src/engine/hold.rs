//! One driver at a time holds a run: a lock of the operating system's, which ends with the process that has it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::name::RunId;

use super::locks;

/// How often a lock is tried again whose holder is not known to be alive.
const PATIENCE: usize = 100;
/// How long to wait in between.
const PAUSE: Duration = Duration::from_millis(10);

/// The hold on a run; released when dropped, or when the process dies in whatever way.
#[derive(Debug)]
pub struct Hold {
    _file: File,
}

impl Hold {
    /// Takes the hold, or says who has it.
    ///
    /// The lock's file stays behind: removing it would let two processes hold two files of the same name.
    pub fn take(common_dir: &Path, run: &RunId) -> Result<Self, Error> {
        let dir = locks::folder(common_dir, locks::RUNS);
        let path = dir.join(run.encoded());
        let io = |source| Error::Io { path: path.clone(), source };
        locks::make(&dir).map_err(io)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        let mut patience = PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
            let mut holder = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut holder)).map_err(io)?;
            let holder = holder.trim();
            // Whoever just took it has yet to write its name; of one that was killed, a child between fork and exec may
            // have the lock for a moment more.
            if patience > 0 && !is_alive(holder) {
                patience -= 1;
                std::thread::sleep(PAUSE);
                continue;
            }
            let holder = if holder.is_empty() { "another process".into() } else { holder.to_owned() };
            return Err(Error::Held { run: run.clone(), holder });
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "process {}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

/// Removes the lock file of a run that is deleted, which nothing asks for again. The caller holds it.
pub fn forget(common_dir: &Path, run: &RunId) {
    let _ = std::fs::remove_file(locks::folder(common_dir, locks::RUNS).join(run.encoded()));
}

/// Returns the process that drives a run, as its lock file names it, or `None` if none does.
///
/// This takes the lock for a moment if no driver has it, so that it is only asked where a driver is expected.
pub fn holder(common_dir: &Path, run: &RunId) -> Option<String> {
    let path = locks::folder(common_dir, locks::RUNS).join(run.encoded());
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut holder = String::new();
    file.read_to_string(&mut holder).ok()?;
    Some(holder.trim().to_owned()).filter(|holder| is_alive(holder))
}

/// Returns whether the process that a lock's file names is alive, as far as this system tells.
fn is_alive(holder: &str) -> bool {
    let Some(id) = holder.strip_prefix("process ") else { return false };
    !cfg!(target_os = "linux") || Path::new("/proc").join(id).exists()
}

/// Why the hold could not be taken.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the run {run:?} is being driven by {holder}")]
    Held { run: RunId, holder: String },
    #[error("the lock file {} could not be used", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}
