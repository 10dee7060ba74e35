//! The committed files of a repository that decide whether work is good.

use std::collections::BTreeSet;

use super::store::Store;
use crate::model::protectable::PROTECTABLE;

/// Returns the known pathspecs, each of which selects a committed file that those before it do not.
pub fn known_files(store: &Store) -> Vec<&'static str> {
    let mut covered = BTreeSet::new();
    let mut pathspecs = Vec::new();
    for pathspec in PROTECTABLE.iter().flat_map(|(_, pathspecs)| *pathspecs) {
        let before = covered.len();
        covered.extend(committed(store, pathspec));
        if covered.len() > before {
            pathspecs.push(*pathspec);
        }
    }
    pathspecs
}

/// Returns the files of `HEAD` and the index that a pathspec selects, or none without a commit.
pub fn committed(store: &Store, pathspec: &str) -> Vec<Vec<u8>> {
    let mut git = store.git();
    if let Some(work_dir) = store.work_dir() {
        git = git.work_tree(&work_dir);
    }
    let listed = git.args(["ls-files", "-z", "--with-tree=HEAD", "--", pathspec]).run().unwrap_or_default();
    listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}
