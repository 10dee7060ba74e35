//! The multi-pack-index: git's index over several packs, which git may write at any time.
//!
//! We do not read it: one written during a merge may name packs that are gone, and gix looks
//! nowhere else for such objects. git itself does, and only `fsck` complains.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gix::odb::pack;

use super::store::Store;

/// The setting that keeps gix from reading it.
pub(super) const SETTING: &str = "core.multiPackIndex=false";

/// Returns the pack indices that it covers, or `None` if it cannot be read.
pub(super) fn covered_indices(folder: &Path) -> Option<HashSet<OsString>> {
    if folder.join("multi-pack-index.d").exists() {
        return None;
    }
    let path = path(folder);
    if !path.exists() {
        return Some(HashSet::new());
    }
    let index = pack::multi_index::File::at(&path, None).ok()?;
    Some(index.index_names().iter().map(|name| name.clone().into_os_string()).collect())
}

/// Returns its path if it names packs that are gone.
pub fn stale(store: &Store) -> Option<PathBuf> {
    let folder = store.objects_dir().join("pack");
    covered_indices(&folder)?.into_iter().any(|name| !folder.join(name).exists()).then(|| path(&folder))
}

/// Removes it if it names packs that we removed, as `git repack` does. git writes another when
/// needed.
pub(super) fn forget_stale(store: &Store) {
    if let Some(path) = stale(store) {
        // `doctor` finds one that cannot be removed.
        let _ = fs::remove_file(path);
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("multi-pack-index")
}
