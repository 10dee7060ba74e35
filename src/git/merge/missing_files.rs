//! A base some of whose files are not here: which ones, and what can be computed without them.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::BString;

use super::Scratch;
use crate::git::patch_paths::{self, Section};
use crate::git::protected::{self, SUBMODULE, list_entries};
use crate::git::store::Store;
use crate::model::digest::Oid;

/// The name of the files that state how paths are merged.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// A base that others chose.
pub(super) struct Foreign {
    /// The number of its files.
    paths: usize,
    /// The paths of those that are missing.
    missing: BTreeSet<BString>,
}

impl Scratch {
    /// Creates one like [`Scratch::isolated`] from objects that others chose: files of the base may
    /// be missing, and git's memory is limited.
    pub fn incomplete(store: &Store, commit: Oid) -> Result<Self, protected::Error> {
        let mut scratch = Self::isolated(store, commit)?;
        let repo = store.local();
        let files = scratch.files()?;
        let paths = files.len();
        let missing = files.into_iter().filter(|(_, blob)| !repo.has_object(blob.0)).map(|(path, _)| path).collect();
        scratch.foreign = Some(Foreign { paths, missing });
        Ok(scratch)
    }

    /// Returns the number of the base's files, if others chose the base.
    pub fn foreign_paths(&self) -> Option<usize> {
        self.foreign.as_ref().map(|foreign| foreign.paths)
    }

    /// Returns true if the file at a path of the base is not here.
    pub fn lacks(&self, path: &BString) -> bool {
        self.foreign.as_ref().is_some_and(|foreign| foreign.missing.contains(path))
    }

    /// Returns true if no file of the base is missing.
    pub fn is_complete(&self) -> bool {
        self.foreign.as_ref().is_none_or(|foreign| foreign.missing.is_empty())
    }

    /// Returns true if merging needs missing files: those that one of the patches changes, or those
    /// that state how to merge.
    pub fn lacks_files_of(&self, patches: &[Vec<u8>]) -> bool {
        let lacks_attributes = self.foreign.iter().flat_map(|foreign| &foreign.missing).any(is_attributes);
        !self.is_complete()
            && (lacks_attributes
                || patches.iter().any(|patch| {
                    let sections = patch_paths::sections(patch);
                    // A patch of another form may change any file.
                    sections
                        .map_or(true, |sections| sections.iter().any(|section| self.lacks_files_of_section(section)))
                }))
    }

    /// Returns true if `git apply` reads a missing file for a section of a patch.
    pub fn lacks_files_of_section(&self, section: &Section) -> bool {
        section.reads().any(|path| self.lacks(path))
    }

    /// Returns the blobs of the base's files and links, by path.
    pub fn files(&self) -> Result<BTreeMap<BString, Oid>, protected::Error> {
        let index = self.folder.path().join("base");
        let entries = list_entries(self.git().env("GIT_INDEX_FILE", index), std::iter::empty())?.into_iter();
        Ok(entries.filter(|(_, entry)| entry.mode != SUBMODULE).map(|(path, entry)| (path, entry.oid)).collect())
    }

    /// Returns the files of the base that merging the patches reads, by path.
    pub fn files_for(&self, patches: &[Vec<u8>]) -> Result<BTreeMap<BString, Oid>, protected::Error> {
        let mut files = self.files()?;
        let mut read = BTreeSet::new();
        for section in patches.iter().filter_map(|patch| patch_paths::sections(patch).ok()).flatten() {
            read.extend(section.reads().cloned());
        }
        files.retain(|path, _| is_attributes(path) || read.contains(path));
        Ok(files)
    }
}

/// Returns true for a path of git's attributes.
fn is_attributes(path: &BString) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(ATTRIBUTES)
}
