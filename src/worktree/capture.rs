//! Captures an attempt's products after its processes ended.
//!
//! The worktree is hostile. It is walked without following links before git sees it. git then works
//! with our own git directory, a copy of the index from checkout, and the attributes of the base:
//! no `.git` in the worktree is ever read.

pub(super) mod changed;
mod confined_git;
mod excluded;
pub(super) mod filtered;
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

pub use excluded::MOST_EXCLUDED;
use gix::bstr::BString;
use large::Large;
use part::Part;
use patch::Change;

use crate::git::incoming;
use crate::git::program;
use crate::git::store::{self, Batch, KeepGuard};
use crate::model::credential::gate::Secret;
use crate::model::digest::Oid;
use crate::model::entry::Product;
use crate::model::name::FilePath;
use crate::model::pipeline::CaptureKind;
use crate::sandbox::folder::Crowded;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Workspace};

/// The products of an attempt, with bytes already in the object database.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// The change to the worktree, or `None` if nothing changed.
    pub patch: Option<Product>,
    /// The changes to submodules, by output name.
    pub submodules: BTreeMap<FilePath, Product>,
    /// The files below `outputs/`.
    pub outputs: BTreeMap<FilePath, Product>,
    /// Descriptions of repositories in the worktree that no patch can carry.
    pub left_out: Vec<String>,
    /// Untracked paths that the patch omits because the host excludes them, sorted; at most
    /// [`MOST_EXCLUDED`]. A folder ends with a slash.
    pub excluded: Vec<String>,
    /// The objects for git-lfs, to be stored once the rest is accepted.
    pub large: Vec<Large>,
    /// Keeps their bytes until a ref reaches them.
    pub guard: KeepGuard,
}

/// Captures the patch and the outputs of an attempt.
///
/// Runs no git process if nothing changed. [`Error::Refused`] is the worker's fault and fails the
/// item; any other error is ours. [`Error::Secret`] is returned before any byte of the file with
/// the secret is written into the repository. Errors leave at most unreferenced objects; the
/// worktree is not changed.
pub fn capture(workspace: &Workspace, host: &Host) -> Result<Captured, Error> {
    nothing_is_left(workspace)?;
    let host = &host.taking();
    let mut batch = host.store.batch();
    let changes = changes(workspace, host)?;
    let outputs = outputs::capture(workspace, host, &mut batch)?;
    let captured = Captured { outputs, large: large_of(host), ..changes.store(&mut batch)? };
    Ok(Captured { guard: batch.keep().map_err(Error::Store)?, ..captured })
}

/// Captures the difference between the base and a commit that was made before, without submodules,
/// as the patch.
pub fn capture_commit(workspace: &Workspace, host: &Host, commit: Oid) -> Result<Captured, Error> {
    let mut file = patch::between(host, &workspace.dir, workspace.base, commit)?;
    let is_empty = file.metadata().map_err(Error::at(&workspace.dir))?.len() == 0;
    let mut batch = host.store.batch();
    let patch = if is_empty { None } else { Some(store(&mut batch, &mut file)?) };
    Ok(Captured { patch, guard: batch.keep().map_err(Error::Store)?, ..Captured::default() })
}

/// Captures only the patch, with changes to submodules, or only the outputs, like [`capture`]. Can
/// be called again after the worktree changed.
pub fn capture_part(workspace: &Workspace, host: &Host, kind: CaptureKind) -> Result<Captured, Error> {
    nothing_is_left(workspace)?;
    let host = &host.taking();
    let mut batch = host.store.batch();
    let mut captured = Captured::default();
    match kind {
        CaptureKind::Patch => captured = changes(workspace, host)?.store(&mut batch)?,
        CaptureKind::Outputs => captured.outputs = outputs::capture(workspace, host, &mut batch)?,
    }
    captured.large = large_of(host);
    captured.guard = batch.keep().map_err(Error::Store)?;
    Ok(captured)
}

/// Returns the captured objects for git-lfs.
pub(super) fn large_of(host: &Host) -> Vec<Large> {
    std::mem::take(&mut host.taking.large.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns output names reserved for changes to submodules, checked out or not.
pub fn submodule_outputs(workspace: &Workspace, host: &Host) -> Result<BTreeSet<FilePath>, Error> {
    Ok(submodules::outputs(&*host.base(workspace.base).map_err(Error::Workspace)?))
}

/// Refuses a worktree that a process may still write to.
fn nothing_is_left(workspace: &Workspace) -> Result<(), Error> {
    if workspace.is_in_doubt() {
        return Err(Error::refused("a process of the item could not be killed"));
    }
    Ok(())
}

/// The differences of a worktree from its base, in private files.
struct Changes {
    /// The patch of the repository's own files, or `None`.
    patch: Option<File>,
    /// The patches of submodules.
    submodules: BTreeMap<FilePath, File>,
    /// The repositories that the patches omit.
    left_out: Vec<BString>,
    /// The excluded paths.
    excluded: Vec<String>,
}

impl Changes {
    /// Writes the patches into the batch.
    fn store(self, batch: &mut Batch) -> Result<Captured, Error> {
        let patch = self.patch.map(|mut file| store(batch, &mut file)).transpose()?;
        let submodules = self.submodules.into_iter().map(|(name, mut file)| Ok((name, store(batch, &mut file)?)));
        let submodules = submodules.collect::<Result<_, Error>>()?;
        let left_out = self.left_out.iter().map(|path| walk::display_path(path)).collect();
        Ok(Captured { patch, submodules, left_out, excluded: self.excluded, ..Captured::default() })
    }
}

/// Captures the differences of the worktree from its base.
fn changes(workspace: &Workspace, host: &Host) -> Result<Changes, Error> {
    let base = host.base(workspace.base).map_err(Error::Workspace)?;
    let mut walked = walk::walk(workspace, host, &base)?;
    let excluded = std::mem::take(&mut walked.excluded).in_words();
    let (submodules, mut left_out) = submodules::capture(workspace, host, &base)?;
    let part = Part::new(workspace, host, &base);
    let change = if walked.changed { patch::capture(&part, &walked)? } else { Change::default() };
    left_out.extend(change.left_out);
    Ok(Changes { patch: change.patch, submodules, left_out, excluded })
}

/// Writes a file into the batch.
fn store(batch: &mut Batch, file: &mut File) -> Result<Product, Error> {
    batch.write_file(file).map_err(Error::Store)
}

errors! {
    /// Why products cannot be captured.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Refused(String): "{0}";
    Io(PathBuf, #[source] io::Error): "{} could not be read or written" [.0.display()];
    Late: "capturing the item's products exceeds `handoff.captureTimeout`";
    Filter(String): "cannot run the repository's filters in the item's sandbox: {0}";
    Unfiltered(String): "cannot filter {0}: the confinement of the attempt is no longer known";
    Git(#[source] Box<program::Error>): "cannot capture the worktree";
    TakeIn(#[from] incoming::Error): "cannot store the worktree in the repository";
    Store(#[source] store::Error): "cannot store a product";
    #[from] Secret(Secret), Workspace(workspace::Error);
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

    /// Returns a function that wraps an I/O error at `path` as our own error.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }

    pub(super) fn git(error: program::Error) -> Self {
        match error {
            program::Error::Late(_) => Self::Late,
            // The limit protects us from expensive files of a worker.
            program::Error::Memory(_) => Self::Refused(format!("{error}, the limit of `maxMemory`")),
            error => Self::Git(Box::new(error)),
        }
    }
}
