//! The state of all tracked files after a patch, for a worktree without a worker.

use std::collections::BTreeSet;

use gix::bstr::BString;

use super::{Error, Guard, SUBMODULE};
use crate::git::merge::Scratch;
use crate::git::protected::{Consumed, Protection, Reference, quote_path};
use crate::git::store::Store;
use crate::model::digest::Oid;

impl Guard {
    /// Computes the state of all files of the base after a patch. Other files of a worktree are not
    /// protected.
    pub fn of_product(store: &Store, base: Oid, patch: &[Consumed]) -> Result<Self, Error> {
        let scratch = Scratch::new(store, base)?;
        let start = scratch.base();
        let reference = Protection::all(&scratch).reference(start, patch)?;
        Ok(Self { scratch, start, rules: BTreeSet::new(), tracked: true, reference, tree: None, held_out: None })
    }

    /// Returns true if the base has a submodule at this path.
    pub fn is_submodule(&self, path: &str) -> bool {
        self.reference.base.get(&BString::from(path)).is_some_and(|entry| entry.mode == SUBMODULE)
    }

    /// Returns a submodule that the reference state changes, adds or removes.
    pub fn changed_submodule(&self) -> Option<String> {
        let Reference { base, files, .. } = &self.reference;
        let submodules = base.iter().chain(files).filter(|(_, entry)| entry.mode == SUBMODULE);
        submodules
            .map(|(path, _)| path)
            .find(|path| base.get(*path) != files.get(*path))
            .map(|path| quote_path(path.as_ref()))
    }
}
