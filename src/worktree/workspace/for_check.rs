//! Gives a check its own surroundings in the worktree of the worker: private files, copies of
//! agents' folders, git directories and inputs, as a new attempt gets them.
//!
//! Those of the worker are moved aside before the check and moved back after it: its commits are
//! found there, and a pipeline may continue. Only the inputs stay as they were given.

use std::os::fd::AsFd as _;
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice};

use super::agent_folders::AGENT;
use super::logins::{STATE, give_back};
use super::reset::write_git;
use super::submodules::put_empty;
use super::{Base, Error, Index, Refs, Workspace};
use crate::sandbox::folder::Folder;
use crate::worktree::host::Host;
use crate::worktree::protect::tree::Tree;

/// The folder of an attempt that holds what belongs to the worker while a check runs.
const ASIDE: &str = "worker";

/// The worktree in the folder of an attempt.
const TREE: &str = "tree";

impl Workspace {
    /// Moves the surroundings of the worker aside and creates new ones, but no home directory.
    /// Returns the worktree as the check gets it.
    ///
    /// Call this after the worker's processes ended. A failure gives everything back.
    pub fn begin_check(&self, host: &Host) -> Result<Self, Error> {
        if self.is_in_doubt() {
            return Err(Error::StillRunning);
        }
        if !self.is_in_place() {
            return Err(Error::Replaced(self.dir.clone()));
        }
        let (base, refs) = (host.base(self.base)?, host.refs()?);
        self.renew_logins();
        self.folder.remove(ASIDE).and_then(|()| self.folder.make(ASIDE)).map_err(Error::at(&self.dir))?;
        match self.replace(host, &base, &refs) {
            Ok(()) => Ok(self.clone().for_check()),
            Err(error) => {
                self.end_check(host)?;
                Err(error)
            }
        }
    }

    /// Returns the worktree with the mark that only a check runs in it.
    #[must_use]
    pub fn for_check(self) -> Self {
        Self { is_for_check: true, agent: Arc::default(), ..self }
    }

    /// Returns true if only a check runs in it.
    pub fn is_for_check(&self) -> bool {
        self.is_for_check
    }

    fn replace(&self, host: &Host, base: &Base, refs: &Refs) -> Result<(), Error> {
        let [tree, parked] = self.trees()?;
        for (number, path) in git_dirs(base).iter().enumerate() {
            move_away(&tree, path.as_ref(), &parked, &git_aside(number)).map_err(Error::at(&self.dir))?;
        }
        for name in [AGENT, STATE].into_iter().filter(|name| self.folder.has(name)) {
            rustix::fs::renameat(&*self.folder, name, parked.as_fd(), name)
                .map_err(|e| Error::io(&self.dir, e.into()))?;
        }
        self.private.move_aside()?;
        self.private.create()?;
        let index = self.index().cloned().unwrap_or_else(|| index_of(base));
        write_git(base, refs, &index, &self.dir)?;
        for (submodule, submodule_index) in base.submodules().iter().zip(&index.submodules) {
            // The worker may have put a link in its place.
            if tree.is_folder(submodule.path.as_ref()).map_err(Error::at(&self.dir))? {
                submodule.write_git(&self.tree(), submodule_index)?;
            }
        }
        for path in base.empty_submodules() {
            if tree.is_folder(path.as_ref()).map_err(Error::at(&self.dir))? {
                put_empty(host, &self.tree(), &path)?;
            }
        }
        self.clear_inputs(&tree)
    }

    /// Replaces the folder of inputs by an empty one.
    fn clear_inputs(&self, tree: &Tree) -> Result<(), Error> {
        let below = self.inputs.strip_prefix(self.tree()).unwrap_or(&self.inputs);
        let above = below.parent().unwrap_or(below);
        let [below, above] = [below, above].map(|path| BString::from(path.as_os_str().as_encoded_bytes()));
        let is_whole = tree.is_folder(above.as_ref()).map_err(Error::at(&self.inputs))?;
        if !is_whole {
            return Err(Error::Inputs(self.inputs.clone()));
        }
        tree.remove(below.as_ref()).and_then(|()| tree.make(below.as_ref())).map_err(Error::at(&self.inputs))
    }

    /// Replaces the surroundings of a check by the worker's. Does nothing if no check has begun.
    pub fn end_check(&self, host: &Host) -> Result<(), Error> {
        if !self.folder.has(ASIDE) {
            return Ok(());
        }
        let base = host.base(self.base)?;
        let [tree, parked] = self.trees()?;
        give_back(&self.folder, &self.dir, true);
        for name in [AGENT, STATE] {
            if parked.find(name.into()).map_err(Error::at(&self.dir))?.is_some() {
                self.folder.remove(name).map_err(Error::at(&self.dir))?;
                rustix::fs::renameat(parked.as_fd(), name, &*self.folder, name)
                    .map_err(|e| Error::io(&self.dir, e.into()))?;
            }
        }
        for (number, path) in git_dirs(&base).iter().enumerate() {
            move_back(&tree, path.as_ref(), &parked, &git_aside(number)).map_err(Error::at(&self.dir))?;
        }
        self.private.move_back()?;
        self.folder.remove(ASIDE).map_err(Error::at(&self.dir))
    }

    /// Opens the worktree and the folder aside.
    fn trees(&self) -> Result<[Tree; 2], Error> {
        let open = |name| Tree::open(self.folder.as_fd(), name).map_err(Error::at(&self.dir));
        Ok([open(TREE)?, open(ASIDE)?])
    }
}

/// Gives back the logins of a worker whose check was interrupted.
pub(super) fn give_back_aside(attempt: &Folder, dir: &std::path::Path) {
    if let Ok(parked) = attempt.folder(ASIDE) {
        give_back(&parked, &dir.join(ASIDE), true);
    }
}

/// Returns the index of a base without the status of files, which git then reads.
fn index_of(base: &Base) -> Index {
    let submodules = base.submodules().iter().map(|submodule| submodule.index().clone()).collect();
    Index { state: base.index().clone(), submodules, written: std::time::SystemTime::UNIX_EPOCH }
}

/// Returns the paths of all git directories that a new worktree of the base has.
fn git_dirs(base: &Base) -> Vec<BString> {
    let submodules = base.submodules().iter().map(|submodule| submodule.path.clone());
    let below = submodules.chain(base.empty_submodules()).map(|path| BString::from([&path[..], b"/.git"].concat()));
    std::iter::once(BString::from(".git")).chain(below).collect()
}

/// Returns the name of a git directory in the folder aside.
fn git_aside(number: usize) -> BString {
    format!("git.{number}").into()
}

fn move_away(tree: &Tree, path: &BStr, parked: &Tree, name: &BString) -> std::io::Result<()> {
    // Opening a folder restores the permissions that moving it needs.
    let is_there = tree.is_folder(path)? || tree.find(path)?.is_some();
    if is_there { tree.rename(path, parked, name.as_bstr()) } else { Ok(()) }
}

fn move_back(tree: &Tree, path: &BStr, parked: &Tree, name: &BString) -> std::io::Result<()> {
    let parent = path.strip_suffix(b"/.git").map_or(b"".as_bstr(), ByteSlice::as_bstr);
    if parked.find(name.as_bstr())?.is_none() || !tree.is_folder(parent)? {
        return Ok(());
    }
    tree.remove(path)?;
    parked.rename(name.as_bstr(), tree, path)
}
