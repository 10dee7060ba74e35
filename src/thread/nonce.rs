//! The used nonces of this repository: a descriptor can be adopted once.
//!
//! The chains are the record: an adopted thread names its nonce. A nonce is noted here as well, for
//! threads that are deleted later. It is noted after the thread was created, so after a crash in
//! between only the thread names it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::git::no_locks::NoLocks;
use crate::git::store::Store;
use crate::git::trace;
use crate::model::digest::Digest;

/// The lock on this repository's nonces, released on drop or when the process ends.
pub(super) struct Nonces {
    dir: PathBuf,
    _lock: File,
}

impl Nonces {
    /// Acquires the lock; blocks.
    pub(super) fn lock(store: &Store) -> Result<Self, Error> {
        let folder = store.common_dir().join("handoff");
        let (locks, dir) = (folder.join("locks"), folder.join("nonces"));
        let path = locks.join("@adopt");
        fs::create_dir_all(&locks).map_err(at(&locks))?;
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = options.map_err(at(&path))?;
        let locked = match lock.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => {
                trace::waits_for(path.display());
                lock.lock()
            }
        };
        locked.map_err(|error| NoLocks::explain(&path, error)).map_err(at(&path))?;
        Ok(Self { dir, _lock: lock })
    }

    /// Returns true if a nonce was noted as used.
    pub(super) fn is_used(&self, nonce: &str) -> Result<bool, Error> {
        let path = self.used(nonce);
        path.try_exists().map_err(|e| Error(path, e))
    }

    /// Notes a nonce as used.
    pub(super) fn consume(&self, nonce: &str) -> Result<(), Error> {
        let path = self.used(nonce);
        let write = || {
            fs::create_dir_all(&self.dir)?;
            File::create(&path)?.sync_all()?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|e| Error(path.clone(), e))
    }

    fn used(&self, nonce: &str) -> PathBuf {
        self.dir.join(Digest::compute(nonce.as_bytes()).hex())
    }
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error(path, error)
}

/// A nonce could not be looked up or noted.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be read or written", .0.display())]
pub struct Error(PathBuf, #[source] io::Error);
