//! The lock file of one loose ref, as git has it, and the ref's new value through it.
//!
//! gix locks `packed-refs` as well for every change of a ref, where there is such a file: a process that is killed then would
//! lock the repository for everybody. git does that only to take a ref out of that file, and so do we.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::model::digest::Oid;

/// How long a lock that somebody else has is waited for; git's own `core.filesRefLockTimeout`, by default.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long to wait in between.
const PAUSE: Duration = Duration::from_millis(2);

/// The lock on a ref; let go, with nothing changed, when it is dropped.
pub(super) struct RefLock {
    lock: PathBuf,
    path: PathBuf,
    file: File,
    /// Whether the lock file is still ours to remove.
    held: bool,
}

impl RefLock {
    /// Takes the lock of the ref whose file is `path`; none where somebody else has it.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let lock = lock_of(path);
        let begun = Instant::now();
        loop {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(file) => return Ok(Some(Self { lock, path: path.to_owned(), file, held: true })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if begun.elapsed() >= PATIENCE {
                        return Ok(None);
                    }
                    std::thread::sleep(PAUSE);
                }
                // Packing refs removes folders that got empty, and may do so right after we made one.
                Err(error) if error.kind() == io::ErrorKind::NotFound && begun.elapsed() < PATIENCE => {
                    fs::create_dir_all(path.parent().unwrap_or(path))?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the ref its new value, forced to disk before it can be seen if that is asked for.
    pub(super) fn set(mut self, new: Oid, force: bool) -> io::Result<()> {
        writeln!(self.file, "{new}")?;
        if force {
            self.file.sync_data()?;
        }
        fs::rename(&self.lock, &self.path)?;
        self.held = false;
        Ok(())
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.held {
            // One that cannot be removed is found by `doctor`.
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// Returns the lock file of a file.
pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}
