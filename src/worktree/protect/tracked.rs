//! The state of all tracked files after a patch, for a worktree that nobody works in.

use std::fs;

use gix::bstr::BString;

use super::{Enforced, Error, FOLDER, Guard, SUBMODULE};
use crate::git::merge::Scratch;
use crate::git::protected::{Consumed, Protection, Reference, shown};
use crate::git::store::Store;
use crate::model::digest::Oid;

impl Guard {
    /// Computes the state of all files of the base after a patch. Other files of a worktree are not
    /// protected.
    pub fn of_product(store: &Store, base: Oid, patch: &[Consumed]) -> Result<Self, Error> {
        let scratch = Scratch::new(store, base)?;
        let reference = Protection::new(&scratch, &[]).reference(patch)?;
        Ok(Self { scratch, pathspecs: Vec::new(), tracked: true, reference, tree: None, held_out: None })
    }

    /// Returns true if the base has a submodule at this path.
    pub fn is_submodule(&self, path: &str) -> bool {
        self.reference.base.get(&BString::from(path)).is_some_and(|entry| entry.mode == SUBMODULE)
    }

    /// Returns a submodule that the reference state changes, adds or removes.
    pub fn changed_submodule(&self) -> Option<String> {
        let Reference { base, files } = &self.reference;
        let differs = |path: &&BString| base.get(*path) != files.get(*path);
        let submodules = base.iter().chain(files).filter(|(_, entry)| entry.mode == SUBMODULE);
        submodules.map(|(path, _)| path).find(differs).map(|path| shown(path.as_ref()))
    }
}

impl Enforced<'_> {
    /// Keeps the reference state for good. Removes folders that are empty without a file that was
    /// moved aside.
    pub fn keep(self) -> Result<(), Error> {
        let tree = self.workspace.tree();
        for (place, _) in &self.moved {
            let folders = place.ancestors().skip(1).take_while(|folder| *folder != tree);
            // Fails for the first folder that is not empty, or that is gone already.
            let _ = folders.map(fs::remove_dir).take_while(Result::is_ok).count();
        }
        self.workspace.folder().remove(FOLDER).map_err(Error::io(&self.folder))
    }
}
