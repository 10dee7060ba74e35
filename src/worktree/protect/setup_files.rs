//! Files that a setup command made in a fresh worktree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::bstr::BString;

use super::{Error, Guard, as_index_path};
use crate::git::ignored::ignored;
use crate::git::merge;
use crate::git::program::Git;
use crate::git::protected::{FILE, Protection};
use crate::git::verified_stream;
use crate::model::digest::{Digest, Oid};
use crate::worktree::host::Host;

impl Guard {
    /// Returns the protected paths of a product and of the tree that it began on, or `None` if no
    /// rule protects what a setup may make. These are the worker's, or come from other workers.
    pub(super) fn product_paths(
        &self,
        host: &Host,
        patch: Option<(Oid, Digest)>,
    ) -> Result<Option<BTreeSet<BString>>, Error> {
        if !self.rules.iter().any(|rule| rule.pathspec().is_none()) {
            return Ok(None);
        }
        let patch = patch.map(|(oid, digest)| verified_stream::read(&host.store, oid, &[digest])).transpose()?;
        let product = self.protection().entries(self.product(patch)?)?;
        Ok(Some(product.into_keys().chain(self.reference.start.keys().cloned()).collect()))
    }

    /// Returns those of some files that only a rule with exceptions protects and git ignores in
    /// this worktree.
    pub(super) fn find_ignored(
        &self,
        host: &Host,
        tree: &Path,
        files: &BTreeSet<&BString>,
    ) -> Result<BTreeSet<BString>, Error> {
        let pathspecs = self.rules.iter().filter(|rule| rule.pathspec().is_some());
        let mut paths: BTreeMap<BString, &BString> =
            files.iter().map(|path| (as_index_path(path.as_ref()), *path)).collect();
        let selected =
            Protection::new(&self.scratch, pathspecs).select(paths.keys().map(|path| (path.as_ref(), FILE)))?;
        paths.retain(|path, _| !selected.contains(path));
        let paths: Vec<&[u8]> = paths.values().map(|path| path.as_slice()).collect();
        // The user's index may track other files.
        let index = self.scratch.folder().join("none");
        Ok(ignored(|| Git::new(&host.store.git_dir()).work_tree(tree).env("GIT_INDEX_FILE", &index), &paths)
            .map_err(merge::Error::Git)?)
    }
}
