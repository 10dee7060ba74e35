//! What is known, between commands, of items that are applied one after the other while a person resolves what conflicts.
//!
//! One file in the git directory of the work tree. It is written before anything that it speaks of is done, so that whatever is cut
//! short can be taken up again or undone.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::name::{ItemId, RunId};

/// The file, in the git directory of a work tree.
const FILE: &str = "handoff-apply.json";

/// The version of its form.
const VERSION: u32 = 1;

/// Items that are being applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Underway {
    v: u32,
    /// The run.
    pub run: RunId,
    /// What the run was called.
    pub name: String,
    /// The items, in the order in which they are applied.
    pub items: Vec<ItemId>,
    /// How many of them are done.
    pub(super) done: usize,
    /// Where `HEAD` was.
    pub(super) head: Oid,
    /// The branch, by its ref; none where `HEAD` is detached.
    pub(super) branch: Option<String>,
    /// Where it is now.
    pub(super) tip: Oid,
    /// What the commit is to say, where a person said so.
    pub(super) message: Option<String>,
    /// Whether hooks are run.
    pub(super) hooks: bool,
    /// What is being done with the next item.
    pub(super) now: Option<Now>,
    /// Whether all of it is being undone.
    pub(super) aborting: bool,
}

/// What is being done with an item.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Now {
    /// The tree that goes into index and work tree.
    pub(super) to: Oid,
    /// Whether it is there, with its conflicts, for a person to resolve.
    pub(super) shown: bool,
    /// The paths that conflict, as bytes.
    pub(super) paths: Vec<Vec<u8>>,
    /// The commit that the branch is moved to.
    pub(super) commit: Option<Oid>,
}

impl Underway {
    /// Makes the one of items of which none is done yet.
    pub(super) fn new(run: RunId, name: String, items: Vec<ItemId>, at: (Oid, Option<String>)) -> Self {
        let (head, branch) = at;
        Self {
            v: VERSION,
            run,
            name,
            items,
            done: 0,
            head,
            branch,
            tip: head,
            message: None,
            hooks: true,
            now: None,
            aborting: false,
        }
    }

    /// Returns the same with what its commit is to say, and whether hooks are run.
    pub(super) fn with(self, message: Option<String>, hooks: bool) -> Self {
        Self { message, hooks, ..self }
    }

    /// Reads what is underway in this work tree; none where nothing is.
    pub fn read(store: &Store) -> Result<Option<Self>, Error> {
        let path = path(store);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| Error::Io(path.clone(), error))?,
        };
        let read: Self = serde_json::from_slice(&bytes).map_err(|error| Error::Form(path.clone(), error))?;
        if read.v == VERSION { Ok(Some(read)) } else { Err(Error::Version { path, version: read.v }) }
    }

    /// Writes it where nothing is underway.
    pub(super) fn begin(&self, store: &Store) -> Result<(), Error> {
        let path = path(store);
        match self.written(store)?.persist_noclobber(&path) {
            Ok(_) => settle(store),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Underway(self.run.clone())),
            Err(error) => Err(Error::Io(path, error.error)),
        }
    }

    /// Writes it anew.
    pub(super) fn save(&self, store: &Store) -> Result<(), Error> {
        let path = path(store);
        self.written(store)?.persist(&path).map_err(|error| Error::Io(path, error.error))?;
        settle(store)
    }

    /// Removes it: nothing is underway any more.
    pub(super) fn end(store: &Store) -> Result<(), Error> {
        let path = path(store);
        fs::remove_file(&path).map_err(|error| Error::Io(path, error))
    }

    fn written(&self, store: &Store) -> Result<NamedTempFile, Error> {
        let path = path(store);
        let failed = |error| Error::Io(path.clone(), error);
        let mut file =
            tempfile::Builder::new().prefix("handoff-apply-").tempfile_in(store.git_dir()).map_err(failed)?;
        let bytes = serde_json::to_vec(self).expect("all of it can be written as JSON");
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        Ok(file)
    }
}

/// Forces the file's new name to disk: what it speaks of comes later.
fn settle(store: &Store) -> Result<(), Error> {
    let dir = store.git_dir();
    fs::File::open(&dir).and_then(|dir| dir.sync_all()).map_err(|error| Error::Io(dir, error))
}

fn path(store: &Store) -> PathBuf {
    store.git_dir().join(FILE)
}

/// Why it cannot be said what is underway, or why nothing else can begin.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("conflicts of the run {0} are being resolved in this work tree")]
    Underway(RunId),
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("{} is not what this program writes", .0.display())]
    Form(PathBuf, #[source] serde_json::Error),
    #[error("{path:?} has version {version}, which this program does not know")]
    Version { path: PathBuf, version: u32 },
}
