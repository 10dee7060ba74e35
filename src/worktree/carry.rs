//! Gives an attempt's worktree the work that was done in the user's own work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::BStr;

use crate::git::snapshot;
use crate::worktree::held_out;
use crate::worktree::host::Host;
use crate::worktree::protect::tree::Tree;
use crate::worktree::workspace::Workspace;

/// The most files below the folder for outputs.
const MOST: usize = 100_000;

/// The files below the folder for outputs of the user's work tree, before the work.
pub struct OutputsBefore(BTreeMap<PathBuf, State>);

/// The state of a file, which a write changes: device, inode, size, and the two times.
type State = (u64, u64, u64, i128, i128);

impl OutputsBefore {
    /// Reads them; there may be none.
    pub fn read(host: &Host, top: &Path) -> Result<Self, Error> {
        Ok(Self(outputs(&top.join(&host.outputs))?.into_iter().collect()))
    }
}

/// Gives the worktree each file of the user's work tree that differs from the base, and the outputs
/// that are new or written since.
///
/// No process may run in the worktree meanwhile. A failure leaves a worktree that must be removed.
pub fn work_tree(host: &Host, workspace: &Workspace, top: &Path, before: &OutputsBefore) -> Result<(), Error> {
    let beside = [host.inputs.as_str(), host.outputs.as_str()];
    let tree = Tree::open(workspace.folder().as_fd(), "tree").map_err(Error::at(&workspace.tree()))?;
    let changed = snapshot::changed(&host.store, workspace.base, &beside)?;
    let is_there = |path: &PathBuf| fs::symlink_metadata(top.join(path)).ok().map(|meta| meta.file_type());
    // A file that became a folder is removed before the files in it are written.
    let (there, gone): (Vec<&PathBuf>, Vec<&PathBuf>) = changed.iter().partition(|path| is_there(path).is_some());
    for path in gone {
        tree.remove(bytes(path)).map_err(Error::at(path))?;
    }
    for path in there {
        if is_there(path).is_some_and(is_carried) {
            put(&top.join(path), path, &tree)?;
        }
    }
    let from = top.join(&host.outputs);
    for (path, state) in outputs(&from)? {
        if before.0.get(&path) != Some(&state) {
            put(&from.join(&path), &Path::new(&host.outputs).join(&path), &tree)?;
        }
    }
    Ok(())
}

/// Copies a file or link to a path of the worktree, in place of whatever is there.
fn put(from: &Path, path: &Path, tree: &Tree) -> Result<(), Error> {
    let failed = |error| Error::Io(from.to_owned(), error);
    let folders: BTreeSet<&Path> = path.ancestors().skip(1).filter(|at| !at.as_os_str().is_empty()).collect();
    for folder in folders {
        if !tree.is_folder(bytes(folder)).map_err(failed)? {
            tree.remove(bytes(folder)).map_err(failed)?;
            tree.make(bytes(folder)).map_err(failed)?;
        }
    }
    tree.remove(bytes(path)).map_err(failed)?;
    held_out::copy_into(from, bytes(path), tree).map_err(failed)
}

/// Lists the files and links below a folder, with their state.
fn outputs(folder: &Path) -> Result<Vec<(PathBuf, State)>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let dir = folder.join(&below);
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(Error::at(&dir))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::at(&dir))?;
            let meta = entry.metadata().map_err(Error::at(&dir))?;
            let path = below.join(entry.file_name());
            if meta.is_dir() {
                folders.push(path);
            } else if is_carried(meta.file_type()) {
                found.push((path, state(&meta)));
            }
            if found.len() + folders.len() > MOST {
                return Err(Error::Many(folder.to_owned()));
            }
        }
    }
    Ok(found)
}

fn is_carried(kind: FileType) -> bool {
    kind.is_file() || kind.is_symlink()
}

fn state(meta: &Metadata) -> State {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let changed = nanos(meta.ctime(), meta.ctime_nsec());
    (meta.dev(), meta.ino(), meta.size(), nanos(meta.mtime(), meta.mtime_nsec()), changed)
}

fn bytes(path: &Path) -> &BStr {
    path.as_os_str().as_bytes().into()
}

/// Why a worktree has not got the work.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("cannot copy {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error("{} has more than {MOST} files", .0.display())]
    Many(PathBuf),
    #[error(transparent)]
    Snapshot(#[from] snapshot::Error),
}

impl Error {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
