//! A worktree whose protected files have their reference state, and the way back.

use std::collections::BTreeSet;
use std::io::{self, Read as _};

use gix::bstr::{BStr, BString, ByteSlice as _};
use rustix::fs::FileType;

use super::tree::Tree;
use super::{Error, FOLDER, Guard, HELD_OUT};
use crate::worktree::held_out::HeldOut;
use crate::worktree::host::Host;
use crate::worktree::workspace::Workspace;

/// A worktree whose protected files have their reference state.
pub struct Enforced<'a> {
    pub(super) guard: &'a Guard,
    pub(super) host: &'a Host,
    pub(super) workspace: &'a Workspace,
    /// The worktree.
    pub(super) tree: Tree,
    /// The reference files that are not in the worktree.
    pub(super) files: Tree,
    /// The entries that were moved aside.
    pub(super) moved_files: Tree,
    /// The protected files of the reference state that a worktree has.
    pub(super) reference: BTreeSet<BString>,
    /// The protected paths of the product and of its start, if other ignored files are a setup's.
    pub(super) product_paths: Option<BTreeSet<BString>>,
    /// The files that are laid over.
    pub(super) held_out: Option<&'a HeldOut>,
    /// Protected files that were left as they are.
    pub(super) left: BTreeSet<BString>,
    /// Ignored files that a setup made.
    pub(super) ignored: BTreeSet<BString>,
    /// Entries moved aside, with their names there.
    pub(super) moved: Vec<(BString, BString)>,
    /// Reference and held-out files in the worktree.
    pub(super) written: Vec<BString>,
    /// Folders created for them.
    pub(super) made: Vec<BString>,
}

impl Enforced<'_> {
    pub(super) fn apply(&mut self) -> Result<(), Error> {
        let found = self.guard.find(self.host, self.workspace, &self.tree)?;
        for path in self.reference.clone() {
            let path = path.as_bstr();
            if self.is_same(path).map_err(Error::at(path))? {
                self.left.insert(path.to_owned());
                continue;
            }
            self.move_aside(path)?;
            self.make_parents(path)?;
            self.files.rename(path, &self.tree, path).map_err(Error::at(path))?;
            self.written.push(path.to_owned());
        }
        // A file of the reference state may be below a path that was a file before.
        let moved: BTreeSet<BString> = self.moved.iter().map(|(path, _)| path.clone()).collect();
        let others = found.difference(&self.reference).filter(|path| !moved.contains(*path)).collect();
        self.ignored = self.find_ignored(&others)?;
        for path in others.into_iter().filter(|path| !self.ignored.contains(*path)).cloned().collect::<Vec<_>>() {
            self.move_aside(path.as_ref())?;
        }
        self.remove_emptied();
        if self.product_paths.is_none() {
            for path in self.guard.find_empty(self.host, self.workspace, &self.tree)? {
                self.move_aside(path.as_ref())?;
            }
            self.remove_emptied();
        }
        self.lay_over()
    }

    /// Removes the folders that are empty without the entries that were moved aside. They are made
    /// again when these move back.
    fn remove_emptied(&self) {
        for (path, _) in &self.moved {
            let folders: Vec<&BStr> = parents(path.as_ref()).collect();
            folders.into_iter().rev().for_each(|folder| self.tree.remove_empty(folder));
        }
    }

    /// Returns those of some files that a setup made and git ignores by the rules of the reference
    /// state.
    fn find_ignored(&self, files: &BTreeSet<&BString>) -> Result<BTreeSet<BString>, Error> {
        let Some(product_paths) = &self.product_paths else { return Ok(BTreeSet::new()) };
        let made = files.iter().copied().filter(|path| !product_paths.contains(*path)).collect();
        self.guard.find_ignored(self.host, &self.workspace.tree(), &made)
    }

    /// Copies the held-out files over the worktree.
    fn lay_over(&mut self) -> Result<(), Error> {
        let Some(held_out) = self.held_out else { return Ok(()) };
        held_out.expect_unchanged()?;
        // The work is not salvaged while this mark is there.
        self.moved_files.create(HELD_OUT.into(), 0o600).map_err(Error::at(HELD_OUT.into()))?;
        for path in held_out.paths() {
            self.make_parents(path.as_ref())?;
            self.move_aside(path.as_ref())?;
            self.written.push(path.clone());
            held_out.copy(path.as_ref(), &self.tree).map_err(Error::at(path.as_ref()))?;
        }
        Ok(())
    }

    /// Returns the number of protected files that differed from their reference state.
    pub fn restored(&self) -> usize {
        self.moved.len().max(self.written.len())
    }

    /// Moves an entry aside, if it exists.
    fn move_aside(&mut self, path: &BStr) -> Result<(), Error> {
        if self.tree.find(path).map_err(Error::at(path))?.is_none() {
            return Ok(());
        }
        let name = BString::from(self.moved.len().to_string());
        self.tree.rename(path, &self.moved_files, name.as_ref()).map_err(Error::at(path))?;
        self.moved.push((path.to_owned(), name));
        Ok(())
    }

    /// Creates the folders around a file, and moves aside what is in their place.
    fn make_parents(&mut self, path: &BStr) -> Result<(), Error> {
        for parent in parents(path) {
            match self.tree.find(parent).map_err(Error::at(parent))? {
                Some(found) if found.kind == FileType::Directory => continue,
                Some(_) => self.move_aside(parent)?,
                None => {}
            }
            self.tree.make(parent).map_err(Error::at(parent))?;
            self.made.push(parent.to_owned());
        }
        Ok(())
    }

    /// Returns true if a reference file and the worktree's file have the same type, content and
    /// permissions.
    fn is_same(&self, path: &BStr) -> io::Result<bool> {
        let (Some(a), Some(b)) = (self.files.find(path)?, self.tree.find(path)?) else { return Ok(false) };
        if a.kind == FileType::Symlink && b.kind == FileType::Symlink {
            return Ok(self.files.link(path)? == self.tree.link(path)?);
        }
        let are_files = a.kind == FileType::RegularFile && b.kind == FileType::RegularFile;
        if !are_files || a.size != b.size || a.mode != b.mode || b.links != 1 {
            return Ok(false);
        }
        has_same_bytes(self.files.read(path)?, self.tree.read(path)?)
    }

    /// Gives the worktree back as the worker left it, without protected files that the check wrote.
    ///
    /// Goes on after an error, so that no held-out file stays, and returns the first error.
    pub fn restore(mut self) -> Result<(), Error> {
        let mut first = Ok(());
        let mut note = |result: Result<(), Error>| {
            if first.is_ok() {
                first = result;
            }
        };
        for path in &self.written {
            note(self.tree.remove(path.as_ref()).map_err(Error::at(path.as_ref())));
        }
        match self.guard.find(self.host, self.workspace, &self.tree) {
            Ok(found) => {
                for path in found.iter().filter(|path| !self.left.contains(*path) && !self.ignored.contains(*path)) {
                    note(self.tree.remove(path.as_ref()).map_err(Error::at(path.as_ref())));
                }
            }
            Err(error) => note(Err(error)),
        }
        for path in &self.left {
            note(self.put_back(path.as_ref()).map_err(Error::at(path.as_ref())));
        }
        for folder in self.made.iter().rev() {
            // The check may have written other files there.
            self.tree.remove_empty(folder.as_ref());
        }
        for (path, name) in std::mem::take(&mut self.moved).into_iter().rev() {
            note(self.move_back(path.as_ref(), name.as_ref()).map_err(Error::at(path.as_ref())));
        }
        first?;
        self.workspace.folder().remove(FOLDER).map_err(Error::at(FOLDER.into()))
    }

    /// Restores a file that was left in place, if the check changed it.
    fn put_back(&self, path: &BStr) -> io::Result<()> {
        if self.is_same(path)? {
            return Ok(());
        }
        self.clear(path)?;
        self.files.rename(path, &self.tree, path)
    }

    fn move_back(&self, path: &BStr, name: &BStr) -> io::Result<()> {
        self.clear(path)?;
        self.moved_files.rename(name, &self.tree, path)
    }

    /// Removes the entry at a path, and whatever is in place of its parents.
    fn clear(&self, path: &BStr) -> io::Result<()> {
        for parent in parents(path) {
            match self.tree.find(parent)? {
                Some(found) if found.kind == FileType::Directory => continue,
                Some(_) => self.tree.remove(parent)?,
                None => {}
            }
            self.tree.make(parent)?;
        }
        self.tree.remove(path)
    }

    /// Keeps the reference state for good. Removes folders that are empty without a file that was
    /// moved aside.
    pub fn keep(self) -> Result<(), Error> {
        self.remove_emptied();
        self.workspace.folder().remove(FOLDER).map_err(Error::at(FOLDER.into()))
    }
}

/// Returns the folders around a path, the outermost first.
fn parents(path: &BStr) -> impl Iterator<Item = &BStr> {
    path.find_iter(b"/").map(|at| path[..at].as_bstr())
}

fn has_same_bytes(mut one: std::fs::File, mut other: std::fs::File) -> io::Result<bool> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        io::Read::by_ref(&mut one).take(1 << 20).read_to_end(&mut a)?;
        io::Read::by_ref(&mut other).take(1 << 20).read_to_end(&mut b)?;
        if a != b || a.is_empty() {
            return Ok(a == b);
        }
    }
}
