//! The nonces that were used in this repository: a descriptor is worth one adoption.
//!
//! All of it happens under one lock of the operating system's. A nonce is noted as intended, with the commit that is about to
//! become a thread, before the thread's ref is created, and as used afterwards. After a crash in between, whoever holds the lock
//! next looks whether that thread begins with that commit: if it does, the nonce is used; if not, nothing happened.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::ThreadId;

/// The lock on this repository's nonces; released when dropped, or when the process dies in whatever way.
pub(super) struct Nonces {
    store: Store,
    dir: PathBuf,
    _lock: File,
}

/// What a nonce is about to be used for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Intent {
    thread: ThreadId,
    commit: Oid,
}

impl Nonces {
    /// Waits for the lock.
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

    /// Returns whether a nonce was used, and settles what a crash left open.
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
            // The crash came while the intent was written, so before the ref.
            Err(_) => false,
        };
        if began {
            self.consume(nonce)?;
        } else {
            fs::remove_file(&path).map_err(|e| Error::Io(path, e))?;
        }
        Ok(began)
    }

    /// Notes that a thread is about to begin with a commit.
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

    /// Notes that the thread has begun.
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

/// Why nothing could be said or noted of a nonce.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("the thread of an interrupted adoption could not be read")]
    Chain(#[source] chain::Error),
}
