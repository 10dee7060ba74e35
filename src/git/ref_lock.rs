//! Locks a loose ref with git's lock file and writes its new value.
//!
//! The file alone does not show whether its owner is alive, and a slow process is easily taken for
//! dead. So ours also hold an operating system lock, which ends with the process, and start with a
//! mark. For git's own there is only the time that it stays.
//!
//! gix also locks `packed-refs` for every change if that file exists; a process killed then would
//! block the repository. git does so only to remove a ref from that file, and so do we.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::flush;
use super::no_locks::NoLocks;
use super::trace;
use crate::model::digest::Oid;

/// How long to wait for another process's lock: git's default of `core.filesRefLockTimeout`.
const PATIENCE: Duration = Duration::from_millis(100);

/// The content of our lock file before the new value.
const MARK: &[u8] = b"git-handoff\n";

/// For how long the same lock file of another program must be there before it is stale.
///
/// This is counted by a monotonic clock from the first look at the file. Its date is not used,
/// because the clock may be wrong, here or on the machine that has the disk.
const OTHERS: Duration = Duration::from_secs(10);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The pause between two looks at a lock that may be stale.
const AGAIN: Duration = Duration::from_millis(20);

/// The lock on a ref. Dropping it releases the lock and changes nothing.
pub(super) struct RefLock {
    lock: PathBuf,
    path: PathBuf,
    file: File,
    /// The folders that got an entry when the ref's folder was created.
    grown: Vec<PathBuf>,
    /// True while the lock file is ours to remove.
    is_ours: bool,
}

impl RefLock {
    /// Locks the ref with the file `path`, or returns `None` if another process holds the lock.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        let lock = lock_of(path);
        let begun = Instant::now();
        let mut grown = Vec::new();
        let mut waiting = trace::Waiting::default();
        loop {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(file) => {
                    let (lock, path) = (lock.clone(), path.to_owned());
                    let mut own = Self { lock, path, file, grown: grown.clone(), is_ours: true };
                    own.file.write_all(MARK)?;
                    // Another process may be checking whether it is stale, or just removed it.
                    match own.file.try_lock() {
                        Ok(()) if is_at(&own.file, &own.lock) => return Ok(Some(own)),
                        Ok(()) | Err(TryLockError::WouldBlock) => own.is_ours = false,
                        Err(TryLockError::Error(error)) => return Err(NoLocks::explain(&own.lock, error)),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if begun.elapsed() >= PATIENCE {
                        return Ok(None);
                    }
                    waiting.write(lock.display());
                    std::thread::sleep(PAUSE);
                }
                // `git pack-refs` removes empty folders, perhaps one that we just made.
                Err(error) if error.kind() == io::ErrorKind::NotFound && begun.elapsed() < PATIENCE => {
                    grown.extend(flush::make_folders(path.parent().unwrap_or(path))?);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sets the ref's new value. If `force` is true, the value is flushed to the disk before it is
    /// put in place, and its name afterwards.
    pub(super) fn set(mut self, new: Oid, force: bool) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        writeln!(self.file, "{new}")?;
        if force {
            self.file.sync_data()?;
        }
        fs::rename(&self.lock, &self.path)?;
        self.is_ours = false;
        if force {
            self.path.parent().map_or(Ok(()), flush::folder)?;
            self.grown.iter().try_for_each(|folder| flush::folder(folder))?;
        }
        Ok(())
    }
}

impl Drop for RefLock {
    fn drop(&mut self) {
        if self.is_ours {
            // `doctor` finds one that cannot be removed.
            let _ = fs::remove_file(&self.lock);
        }
    }
}

/// Removes a stale lock file, waiting if necessary until that is certain. The file of a live
/// process stays and is an error.
pub(super) fn clear_left(lock: &Path) -> io::Result<()> {
    let mut first = None;
    let mut waiting = trace::Waiting::default();
    loop {
        let mut file = match OpenOptions::new().read(true).write(true).open(lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let meta = file.metadata()?;
        let identity = (id(&meta), meta.modified()?);
        let since = match first {
            Some((known, since)) if known == identity => since,
            _ => first.insert((identity, Instant::now())).1,
        };
        let mut begins = Vec::new();
        (&mut file).take(MARK.len() as u64).read_to_end(&mut begins)?;
        // A live owner of ours holds a lock on it, or finds that it is gone.
        if begins != MARK && since.elapsed() < OTHERS {
            waiting.write(lock.display());
            std::thread::sleep(AGAIN);
            continue;
        }
        file.try_lock().map_err(|error| NoLocks::explain(lock, error.into()))?;
        // While we hold this lock, no other process removes the file. Its owner is dead.
        return if is_at(&file, lock) { fs::remove_file(lock) } else { Ok(()) };
    }
}

/// Returns true if the open file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let (own, there) = (file.metadata(), fs::symlink_metadata(path));
    own.is_ok_and(|own| there.is_ok_and(|there| id(&own) == id(&there)))
}

/// Returns what no other file has while this one is there: its device and inode.
fn id(of: &fs::Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

/// Returns the path of a file's lock file.
pub(super) fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn date(lock: &Path, at: SystemTime) {
        File::open(lock).unwrap().set_modified(at).unwrap();
    }

    #[test]
    fn a_lock_is_left_by_who_is_gone_and_not_by_who_is_slow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ref");
        let ref_lock = RefLock::take(&path).unwrap().unwrap();
        let lock = lock_of(&path);
        date(&lock, SystemTime::UNIX_EPOCH);
        assert_eq!(clear_left(&lock).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(RefLock::take(&path).unwrap().is_none());
        let new: Oid = "0123456789012345678901234567890123456789".parse().unwrap();
        ref_lock.set(new, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{new}\n"));
        // Ours is recognised at once, another's by the time that it is there.
        for text in [MARK, b""] {
            fs::write(&lock, text).unwrap();
            clear_left(&lock).unwrap();
            assert!(!lock.exists());
        }
        clear_left(&lock).unwrap();
    }

    #[test]
    fn no_clock_makes_a_lock_of_git_stale() {
        let hour = Duration::from_secs(3600);
        for dated in [SystemTime::now() - hour, SystemTime::now() + hour] {
            let folder = tempfile::tempdir().unwrap();
            let lock = lock_of(&folder.path().join("ref"));
            File::create(&lock).unwrap();
            date(&lock, dated);
            std::thread::scope(|scope| {
                let cleared = scope.spawn(|| clear_left(&lock));
                std::thread::sleep(Duration::from_millis(200));
                fs::remove_file(&lock).expect("git ends and removes its own lock");
                cleared.join().unwrap().unwrap();
            });
        }
    }
}
