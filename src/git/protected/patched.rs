//! Applies patches to a base some of whose files are missing.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::{BStr, BString};

use super::{Error, FILE, Protection, edited, quote_path};
use crate::git::patch_paths::{self, Change, Section, Side};
use crate::model::digest::Oid;

impl Protection<'_> {
    /// Applies a patch to a tree. Only the protected files of the result are sure to be right.
    ///
    /// Sections that need missing files are left out, and what they delete is removed. If such a
    /// section touches a protected file, that is [`Error::Missing`].
    pub fn patched_on(&self, tree: Oid, patch: Vec<u8>) -> Result<Oid, Error> {
        if self.scratch.is_complete() {
            return Ok(self.scratch.patched_on(tree, patch)?);
        }
        let sections = patch_paths::sections(&patch)?;
        let (lacking, applied): (Vec<&Section>, Vec<&Section>) =
            sections.iter().partition(|section| self.scratch.lacks_files_of_section(section));
        if lacking.is_empty() {
            return Ok(self.scratch.patched_on(tree, patch)?);
        }
        if let Some(path) = self.selected(&lacking)?.first() {
            return Err(Error::Missing(quote_path(path.as_ref())));
        }
        // A protected file may take the place of a folder.
        let changes = lacking.iter().flat_map(|section| &section.changes);
        let gone: Vec<&BString> =
            changes.filter(|(_, change)| change.new == Side::Absent).map(|(path, _)| path).collect();
        let tree = if gone.is_empty() { tree } else { edited(self.scratch, tree, gone, [])? };
        let bytes: Vec<u8> = applied.iter().flat_map(|section| &patch[section.bytes.clone()]).copied().collect();
        if bytes.is_empty() { Ok(tree) } else { Ok(self.scratch.patched_on(tree, bytes)?) }
    }

    /// Returns the protected paths that sections change, before or after.
    fn selected(&self, sections: &[&Section]) -> Result<BTreeSet<BString>, Error> {
        let with = |side: fn(&Change) -> &Side| {
            let changes = sections.iter().flat_map(|section| &section.changes);
            let paths = changes.filter_map(|(path, change)| match side(change) {
                Side::Absent => None,
                Side::Present(mode, _) => Some((BStr::new(path), mode.unwrap_or(FILE))),
            });
            paths.collect::<BTreeMap<_, _>>()
        };
        let mut selected = self.select(with(|change| &change.old).into_iter())?;
        selected.extend(self.select(with(|change| &change.new).into_iter())?);
        Ok(selected)
    }
}
