//! The used nonces of this repository: a descriptor can be adopted once.
//!
//! Everything happens under one file lock. A nonce is recorded as intended, with the commit of the
//! new thread, before the thread's ref is created, and as used afterwards. After a crash in
//! between, the next holder of the lock checks whether the thread begins with that commit; if so,
//! the nonce is used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::ThreadId;

/// The lock on this repository's nonces, released on drop or when the process ends.
pub(super) struct Nonces {
    store: Store,
    dir: PathBuf,
    _lock: File,
}

/// The intended use of a nonce.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intent {
    thread: ThreadId,
    commit: Oid,
}

impl Nonces {
    /// Acquires the lock; blocks.
    pub(super) fn lock(store: &Store) -> Result<Self, Error> {
        let folder = store.common_dir().join("handoff");
        let (locks, dir) = (folder.join("locks"), folder.join("nonces"));
        let path = locks.join("@adopt");
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| Error::Io(path, error)
        };
        fs::create_dir_all(&locks).map_err(at(&locks))?;
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let lock = options.map_err(at(&path))?;
        lock.lock().map_err(at(&path))?;
        Ok(Self { store: store.clone(), dir, _lock: lock })
    }

    /// Returns true if a nonce was used; completes what a crash interrupted.
    pub(super) fn is_used(&self, nonce: &str) -> Result<bool, Error> {
        if exists(&self.used(nonce))? {
            return Ok(true);
        }
        let path = self.intended(nonce);
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(|e| Error::Io(path.clone(), e))?,
        };
        let began = match serde_json::from_slice::<Intent>(&bytes) {
            Ok(intent) => self.begins_with(&intent)?,
            // The crash happened before the ref was created.
            Err(_) => false,
        };
        if began {
            self.consume(nonce)?;
        } else {
            fs::remove_file(&path).map_err(|e| Error::Io(path, e))?;
        }
        Ok(began)
    }

    /// Records the intent to begin a thread with a commit.
    pub(super) fn intend(&self, nonce: &str, thread: &ThreadId, commit: Oid) -> Result<(), Error> {
        let path = self.intended(nonce);
        let intent = Intent { thread: thread.clone(), commit };
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.dir)?;
            let mut file = File::create(&path)?;
            file.write_all(&format::canonical(&intent))?;
            file.sync_all()?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|e| Error::Io(path.clone(), e))
    }

    /// Records the nonce as used.
    pub(super) fn consume(&self, nonce: &str) -> Result<(), Error> {
        let path = self.used(nonce);
        let rename = || fs::rename(self.intended(nonce), &path).and_then(|()| File::open(&self.dir)?.sync_all());
        rename().map_err(|e| Error::Io(path.clone(), e))
    }

    fn begins_with(&self, intent: &Intent) -> Result<bool, Error> {
        let chain = chain::read(&self.store, &format::thread_ref(&intent.thread)).map_err(Error::Chain)?;
        Ok(chain.is_some_and(|(_, links)| links.first().is_some_and(|link| link.commit == intent.commit)))
    }

    fn used(&self, nonce: &str) -> PathBuf {
        self.dir.join(Digest::of(nonce.as_bytes()).hex())
    }

    fn intended(&self, nonce: &str) -> PathBuf {
        self.used(nonce).with_extension("intended")
    }
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(|e| Error::Io(path.to_owned(), e))
}

/// An error while reading or recording nonces.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("the thread of an interrupted adoption could not be read")]
    Chain(#[source] chain::Error),
}
