//! Gives an attempt's worktree the work that was done in the user's own work tree.
//!
//! The command could change everything there and in the git directory. So each file is compared by
//! its bytes, no link is followed, and what was ignored or left out is read before the command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::BStr;
use rustix::fs::FileType;

use crate::git::branches::Branches;
use crate::git::snapshot::{self, IgnoreRules, Snapshot};
use crate::model::any_error::AnyError;
use crate::worktree::host::Host;
use crate::worktree::protect::tree::Tree;
use crate::worktree::workspace::Workspace;

/// The most files below the folder for outputs.
const MOST: usize = 100_000;

/// The bytes that are compared at once.
const PIECE: usize = 64 << 10;

/// The user's work tree before the work.
pub struct Before {
    rules: IgnoreRules,
    /// Files that a sparse checkout leaves out.
    absent: BTreeSet<PathBuf>,
    /// The files below the folder for outputs.
    outputs: BTreeMap<PathBuf, State>,
    branches: Branches,
}

/// The state of a file, which a write changes: device, inode, size, and the two times.
type State = (u64, u64, u64, i128, i128);

impl Before {
    /// Reads it; `top` is the top of the work tree.
    pub fn read(host: &Host, workspace: &Workspace, top: &Path) -> Result<Self, Error> {
        let usual = host.user_files.as_ref().map(|folder| folder.join("ignore"));
        Ok(Self {
            rules: IgnoreRules::read(&host.store, usual)?,
            absent: Snapshot::new(&host.store, workspace.base)?.absent()?,
            outputs: outputs(&top.join(&host.settings.outputs))?.into_iter().collect(),
            branches: Branches::read(&host.store).map_err(Error::Branches)?,
        })
    }

    /// Describes how `HEAD`, the branches and the stash changed since.
    pub fn moved(&self, host: &Host) -> Result<Vec<String>, Error> {
        Ok(self.branches.changes(&Branches::read(&host.store).map_err(Error::Branches)?))
    }
}

/// Gives the worktree each file of the user's work tree that differs from the base, and the outputs
/// that are new or written since. Returns the paths that are left out: nested repositories, and
/// files of other kinds.
///
/// No process may run in either meanwhile. A failure leaves a worktree that must be removed.
pub fn work_tree(host: &Host, workspace: &Workspace, top: &Path, before: &Before) -> Result<Vec<PathBuf>, Error> {
    let snapshot = Snapshot::new(&host.store, workspace.base)?;
    let (tracked, untracked) = (snapshot.tracked()?, snapshot.untracked(&before.rules)?);
    let is_beside =
        |path: &Path| [&host.settings.inputs, &host.settings.outputs].iter().any(|folder| path.starts_with(folder));
    let from = Tree::at(top).map_err(Error::at(top))?;
    let to = Tree::open(workspace.folder().as_fd(), "tree").map_err(Error::at(&workspace.tree()))?;
    let (mut there, mut left_out) = (Vec::new(), Vec::new());
    for path in tracked.union(&untracked).filter(|path| !is_beside(path)) {
        let found = from.find(bytes(path)).map_err(Error::at(path))?;
        match found.map(|found| found.kind) {
            Some(FileType::RegularFile | FileType::Symlink) => there.push(path),
            None if before.absent.contains(path) => {}
            other => {
                // A file that became a folder is removed before the files in it are written.
                if tracked.contains(path) {
                    to.remove(bytes(path)).map_err(Error::at(path))?;
                }
                left_out.extend(
                    other.filter(|kind| *kind != FileType::Directory || untracked.contains(path)).map(|_| path.clone()),
                );
            }
        }
    }
    for path in there {
        put(&from, &to, path)?;
    }
    for (path, state) in outputs(&top.join(&host.settings.outputs))? {
        if before.outputs.get(&path) != Some(&state) {
            put(&from, &to, &Path::new(&host.settings.outputs).join(&path))?;
        }
    }
    Ok(left_out)
}

/// Copies a file or link, in place of whatever is there, unless that is the same.
fn put(from: &Tree, to: &Tree, path: &Path) -> Result<(), Error> {
    let name = bytes(path);
    let copy = || -> io::Result<()> {
        let Some(found) = from.find(name)? else { return Err(io::ErrorKind::NotFound.into()) };
        if is_same(from, to, name)? {
            return Ok(());
        }
        let folders: BTreeSet<&Path> = path.ancestors().skip(1).filter(|at| !at.as_os_str().is_empty()).collect();
        for folder in folders {
            if !to.is_folder(bytes(folder))? {
                to.remove(bytes(folder))?;
                to.make(bytes(folder))?;
            }
        }
        to.remove(name)?;
        if found.kind == FileType::Symlink {
            return to.make_link(name, &std::ffi::OsString::from_vec(from.link(name)?));
        }
        let mode = if found.mode & 0o100 != 0 { 0o777 } else { 0o666 };
        io::copy(&mut from.read(name)?, &mut to.create(name, mode)?).map(|_| ())
    };
    copy().map_err(Error::at(path))
}

/// Returns true if both trees have the same file or link there.
fn is_same(from: &Tree, to: &Tree, name: &BStr) -> io::Result<bool> {
    let (Some(one), Some(other)) = (from.find(name)?, to.find(name)?) else { return Ok(false) };
    if one.kind != other.kind || one.size != other.size || (one.mode ^ other.mode) & 0o100 != 0 {
        return Ok(false);
    }
    if one.kind == FileType::Symlink {
        return Ok(from.link(name)? == to.link(name)?);
    }
    let (mut from_file, mut to_file) = (from.read(name)?, to.read(name)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    loop {
        for (file, piece) in [(&mut from_file, &mut ours), (&mut to_file, &mut theirs)] {
            piece.clear();
            file.take(PIECE as u64).read_to_end(piece)?;
        }
        if ours != theirs || ours.is_empty() {
            return Ok(ours == theirs);
        }
    }
}

/// Lists the files and links below a folder, with their state. None if it is no folder.
fn outputs(folder: &Path) -> Result<Vec<(PathBuf, State)>, Error> {
    let mut found = Vec::new();
    if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        return Ok(found);
    }
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let dir = folder.join(&below);
        for entry in fs::read_dir(&dir).map_err(Error::at(&dir))? {
            let entry = entry.map_err(Error::at(&dir))?;
            let meta = entry.metadata().map_err(Error::at(&dir))?;
            let path = below.join(entry.file_name());
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() || meta.is_symlink() {
                found.push((path, state(&meta)));
            }
            if found.len() + folders.len() > MOST {
                return Err(Error::Many(folder.to_owned()));
            }
        }
    }
    Ok(found)
}

fn state(meta: &Metadata) -> State {
    let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
    (
        meta.dev(),
        meta.ino(),
        meta.size(),
        i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        changed,
    )
}

fn bytes(path: &Path) -> &BStr {
    path.as_os_str().as_bytes().into()
}

errors! {
    /// Why a worktree has not got the work.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Io(PathBuf, #[source] io::Error): "cannot copy {}" [.0.display()];
    Many(PathBuf): "{} has more than {MOST} files" [.0.display()];
    Branches(#[source] AnyError): "cannot read the branches";
    #[from] Snapshot(snapshot::Error);
}

impl Error {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
