//! The multi-pack-index: git's one index over several packs, which it may write at any time.
//!
//! It has no say in what we read: one that is written while packs are merged may name some that are gone, and gix looks nowhere
//! else for an object that it names. git itself does, and only finds fault with it in `fsck`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gix::odb::pack;

use super::store::Store;

/// The setting that keeps gix from reading it.
pub(super) const SETTING: &str = "core.multiPackIndex=false";

/// Returns the indices of packs that it stands for; none where it cannot be told.
pub(super) fn named(folder: &Path) -> Option<HashSet<OsString>> {
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

/// Returns its path where it names packs that are gone.
pub fn stale(store: &Store) -> Option<PathBuf> {
    let folder = store.objects_dir().join("pack");
    let gone = |name| !folder.join(name).exists();
    named(&folder)?.into_iter().any(gone).then(|| path(&folder))
}

/// Removes it where it names packs that we removed, as `git repack` does: git makes another when it likes.
pub(super) fn forget_stale(store: &Store) {
    if let Some(path) = stale(store) {
        // One that stays is found by `doctor`.
        let _ = fs::remove_file(path);
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("multi-pack-index")
}
