//! The lock file of one loose ref, as git has it, and the ref's new value through it.
//!
//! Such a file says nothing of whether whoever made it is alive, and a process that is slow is soon taken for dead: a disk that is busy
//! takes seconds for what an idle one does in a millisecond. So ours hold a lock of the operating system too, which ends with the
//! process, and begin with a mark. Of git's own there is only the age to go by.
//!
//! gix locks `packed-refs` as well for every change of a ref, where there is such a file: a process that is killed then would
//! lock the repository for everybody. git does that only to take a ref out of that file, and so do we.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::model::digest::Oid;

/// How long a lock that somebody else has is waited for; git's own `core.filesRefLockTimeout`, by default.
const PATIENCE: Duration = Duration::from_millis(100);

/// What a lock file of ours holds until it gets the ref's new value.
const MARK: &[u8] = b"git-handoff\n";

/// How old a lock file of ours is that was left: longer than it takes to lock what was just made.
const OURS: Duration = Duration::from_secs(1);

/// How old a lock file of anybody's is that was left.
const ANYBODYS: Duration = Duration::from_secs(10);

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
                Ok(file) => {
                    let mut own = Self { lock: lock.clone(), path: path.to_owned(), file, held: true };
                    own.file.write_all(MARK)?;
                    // Whoever thinks that it was left looks at it now, or has just removed it.
                    if own.file.try_lock().is_ok() && is_at(&own.file, &lock) {
                        return Ok(Some(own));
                    }
                    own.held = false;
                }
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
        self.file.set_len(0)?;
        self.file.rewind()?;
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

/// Removes a lock file that was left; waits, if need be, until that can be told. One whose process is alive stays, and is an error.
pub(super) fn clear_left(lock: &Path) -> io::Result<()> {
    loop {
        let mut file = match OpenOptions::new().read(true).write(true).open(lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let made = file.metadata()?.modified()?;
        let mut begins = Vec::new();
        (&mut file).take(MARK.len() as u64).read_to_end(&mut begins)?;
        let left = if begins == MARK { OURS } else { ANYBODYS };
        // A lock file from the future is not one that is being written now.
        let age = made.elapsed().unwrap_or(left);
        if age < left {
            std::thread::sleep(left.saturating_sub(age).min(Duration::from_millis(20)));
            continue;
        }
        file.try_lock().map_err(io::Error::from)?;
        // As long as this is locked, nobody else takes it for left; whoever made it is gone.
        return if is_at(&file, lock) { fs::remove_file(lock) } else { Ok(()) };
    }
}

/// Whether a file is the one at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |of: &fs::Metadata| (of.dev(), of.ino());
    let (own, there) = (file.metadata(), fs::symlink_metadata(path));
    own.is_ok_and(|own| there.is_ok_and(|there| id(&own) == id(&there)))
}

/// Where files have no numbers, one that is locked cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Returns the lock file of a file.
pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn age(lock: &Path, by: Duration) {
        File::open(lock).unwrap().set_modified(SystemTime::now() - by).unwrap();
    }

    #[test]
    fn a_lock_is_left_by_who_is_gone_and_not_by_who_is_slow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ref");
        let held = RefLock::take(&path).unwrap().unwrap();
        let lock = lock_of(&path);
        age(&lock, Duration::from_secs(3600));
        assert_eq!(clear_left(&lock).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(RefLock::take(&path).unwrap().is_none());
        let new: Oid = "0123456789012345678901234567890123456789".parse().unwrap();
        held.set(new, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{new}\n"));
        // Ours is told at once, anybody else's by its age.
        for (text, by) in [(MARK, OURS), (b"", ANYBODYS)] {
            fs::write(&lock, text).unwrap();
            age(&lock, by);
            clear_left(&lock).unwrap();
            assert!(!lock.exists());
        }
        clear_left(&lock).unwrap();
    }
}
