//! Files that a setup command made in a fresh worktree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::bstr::BString;

use super::{Error, Guard, as_index_path};
use crate::git::merge;
use crate::git::program::{self, Git};
use crate::git::protected::{FILE, Protection};
use crate::git::verified_stream;
use crate::model::digest::{Digest, Oid};
use crate::worktree::host::Host;

/// A path relative to the worktree, so that a name that starts with a colon is no pathspec.
const HERE: &[u8] = b"./";

impl Guard {
    /// Returns the protected paths of a product and of the tree that it began on, or `None` if no
    /// rule protects what a setup may make. These are the worker's, or come from other workers.
    pub(super) fn tracked_paths(
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
    pub(super) fn ignored(
        &self,
        host: &Host,
        tree: &Path,
        files: &BTreeSet<&BString>,
    ) -> Result<BTreeSet<BString>, Error> {
        let pathspecs = self.rules.iter().filter(|rule| rule.pathspec().is_some());
        let mut asked: BTreeMap<BString, &BString> =
            files.iter().map(|path| (as_index_path(path.as_ref()), *path)).collect();
        let selected =
            Protection::new(&self.scratch, pathspecs).select(asked.keys().map(|path| (path.as_ref(), FILE)))?;
        asked.retain(|path, _| !selected.contains(path));
        let paths = asked.values().flat_map(|path| [HERE, path.as_slice(), b"\0"]);
        let input = paths.collect::<Vec<_>>().concat();
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let git = Git::new(&host.store.git_dir()).work_tree(tree);
        let ignored = match git.args(["check-ignore", "--no-index", "-z", "--stdin"]).input(input).run() {
            // No file is ignored.
            Err(program::Error::Failed { code: Some(1), .. }) => Vec::new(),
            other => other.map_err(merge::Error::Git)?,
        };
        Ok(ignored.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(HERE)).map(BString::from).collect())
    }
}
