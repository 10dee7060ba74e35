//! Takes an attempt's products, after its processes are gone.
//!
//! The worktree is hostile. It is walked without following links before git may see it, and git then works with a git
//! directory of ours, a copy of the index that we made at checkout, and the attributes of the base: neither the worktree's
//! `.git` nor one that the worker nested anywhere is ever read.

mod changed;
pub(super) mod filtered;
mod inside;
pub mod large;
mod outputs;
pub(super) mod part;
mod patch;
pub(super) mod repositories;
pub(super) mod submodules;
pub(super) mod traps;
pub(super) mod tree;
pub(super) mod walk;
mod walked;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use gix::bstr::BString;
use large::Large;
use part::Part;
use patch::Change;

use super::folder::Crowded;
use super::host::Host;
use super::workspace::{self, Workspace};
use crate::git::incoming;
use crate::git::program;
use crate::git::store::{self, Batch, Kept};
use crate::model::credential::gate::Secret;
use crate::model::entry::Product;
use crate::model::name::FilePath;
use crate::model::pipeline::What;

/// What an attempt hands over; its bytes are in the repository's object database.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// The change to the worktree; none where nothing changed.
    pub patch: Option<Product>,
    /// The changes to submodules, each by the name of the output that it is handed over as.
    pub submodules: BTreeMap<FilePath, Product>,
    /// The files below `outputs/`.
    pub outputs: BTreeMap<FilePath, Product>,
    /// The repositories in the worktree that no patch can carry, by their paths in words.
    pub left_out: Vec<String>,
    /// What git-lfs would keep of it, to be taken over once the rest is known to be wanted.
    pub large: Vec<Large>,
    /// Keeps their bytes until a ref reaches them.
    pub kept: Kept,
}

/// Captures the patch and the outputs of an attempt.
///
/// Where nothing in the worktree changed no git process runs. [`Error::Refused`] is the worker's doing and fails the item;
/// anything else is ours. [`Error::Secret`] comes before a byte of what has a secret is written into the repository. Either leaves at most unreferenced objects in the repository; the worktree is not changed.
pub fn capture(workspace: &Workspace, host: &Host) -> Result<Captured, Error> {
    nothing_is_left(workspace)?;
    let host = &host.taking();
    let mut batch = host.store.batch();
    let changes = changes(workspace, host)?;
    let outputs = outputs::capture(workspace, host, &mut batch)?;
    let captured = Captured { outputs, large: large_of(host), ..changes.store(&mut batch)? };
    Ok(Captured { kept: batch.keep().map_err(Error::Store)?, ..captured })
}

/// Captures the patch alone, with the changes to submodules, or the outputs alone, like [`capture`]; may be asked again when the worktree has changed.
pub fn capture_part(workspace: &Workspace, host: &Host, what: What) -> Result<Captured, Error> {
    nothing_is_left(workspace)?;
    let host = &host.taking();
    let mut batch = host.store.batch();
    let mut captured = Captured::default();
    match what {
        What::Patch => captured = changes(workspace, host)?.store(&mut batch)?,
        What::Outputs => captured.outputs = outputs::capture(workspace, host, &mut batch)?,
    }
    captured.large = large_of(host);
    captured.kept = batch.keep().map_err(Error::Store)?;
    Ok(captured)
}

/// Returns what git-lfs would keep of what was taken.
pub(super) fn large_of(host: &Host) -> Vec<Large> {
    std::mem::take(&mut host.taking.large.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the outputs that no worker may leave: where the changes to submodules belong, checked out or not.
pub fn submodule_outputs(workspace: &Workspace, host: &Host) -> Result<BTreeSet<FilePath>, Error> {
    Ok(submodules::outputs(&*host.base(workspace.base).map_err(Error::Workspace)?))
}

/// Refuses a worktree that somebody may still write to.
fn nothing_is_left(workspace: &Workspace) -> Result<(), Error> {
    if workspace.is_in_doubt() {
        return Err(Error::refused("something that was started for the item could not be ended"));
    }
    Ok(())
}

/// The differences of a worktree from its base, in files of ours.
struct Changes {
    /// That of the repository's own files; none where there is none.
    patch: Option<File>,
    /// Those of submodules.
    submodules: BTreeMap<FilePath, File>,
    /// The repositories that they do not hold.
    left_out: Vec<BString>,
}

impl Changes {
    /// Writes them into what is to be kept.
    fn store(self, batch: &mut Batch) -> Result<Captured, Error> {
        let patch = self.patch.map(|mut file| store(batch, &mut file)).transpose()?;
        let submodules = self.submodules.into_iter().map(|(name, mut file)| Ok((name, store(batch, &mut file)?)));
        let submodules = submodules.collect::<Result<_, Error>>()?;
        let left_out = self.left_out.iter().map(|path| walk::shown(path)).collect();
        Ok(Captured { patch, submodules, left_out, ..Captured::default() })
    }
}

/// Takes the differences of the worktree from its base.
fn changes(workspace: &Workspace, host: &Host) -> Result<Changes, Error> {
    let base = host.base(workspace.base).map_err(Error::Workspace)?;
    let walked = walk::walk(workspace, host, &base)?;
    let (submodules, mut left_out) = submodules::capture(workspace, host, &base)?;
    let part = Part::of(workspace, host, &base);
    let taken = if walked.changed { patch::capture(&part, &walked)? } else { Change::default() };
    left_out.extend(taken.left_out);
    Ok(Changes { patch: taken.patch, submodules, left_out })
}

/// Writes a file into what is to be kept.
fn store(batch: &mut Batch, file: &mut File) -> Result<Product, Error> {
    let (oid, sha256, size) = batch.write_file(file).map_err(Error::Store)?;
    Ok(Product { sha256, oid, size })
}

/// Why there are no products.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Secret(#[from] Secret),
    #[error(transparent)]
    Workspace(workspace::Error),
    #[error("{} could not be read or written", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("it takes longer than `handoff.captureTimeout` allows to take what the item left")]
    Late,
    #[error("the filters of the repository could not be run in the item's sandbox: {0}")]
    Filter(String),
    #[error("a filter of the repository is for {0}, and it cannot be told any more what confined the attempt")]
    Unfiltered(String),
    #[error("the worktree could not be captured")]
    Git(#[source] Box<program::Error>),
    #[error("the worktree could not be taken into the repository")]
    TakeIn(#[from] incoming::Error),
    #[error("a product could not be stored")]
    Store(#[source] store::Error),
}

impl From<Crowded> for Error {
    fn from(crowded: Crowded) -> Self {
        Self::refused(crowded.to_string())
    }
}

impl Error {
    fn refused(sentence: impl Into<String>) -> Self {
        Self::Refused(sentence.into())
    }

    /// Returns what makes an I/O error at `path` one of ours.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }

    pub(super) fn git(error: program::Error) -> Self {
        match error {
            program::Error::Late(_) => Self::Late,
            // What a worker left is to cost no more than the worker may.
            program::Error::Memory(_) => Self::Refused(format!("{error}, the most that `maxMemory` gives it")),
            error => Self::Git(Box::new(error)),
        }
    }
}
