//! Merges the packs of ours as they gather: each recorded batch leaves one.
//!
//! Packs that somebody keeps are left alone, and so are those that a multi-pack-index names, which would miss them. Sizes are
//! kept in proportion, as `git repack --geometric` does it, so that a byte is copied a logarithmic number of times.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::odb::pack;
use tempfile::Builder;

use super::kept::{self, Kept, OURS};
use super::midx;
use super::pack::UNFINISHED;
use super::program::Git;
use super::store::Store;

/// More packs than this are too many; git's own limit, beyond which it packs everything anew, is 50.
const MOST: usize = 20;

/// Each pack that is left is at least so many times as large as all smaller ones together.
const FACTOR: u64 = 2;

/// A `gc.pid` that is older than this was left behind, as git sees it.
const ABANDONED: Duration = Duration::from_secs(12 * 60 * 60);

/// How git packs, whatever the configuration says: one pack, large files whole, and no sync, because it is synced when it is adopted.
const SETTINGS: [&str; 5] =
    ["pack.packSizeLimit=0", "pack.window=10", "pack.windowMemory=64m", "core.bigFileThreshold=4m", "core.fsync=none"];

/// A pack of ours that nobody keeps.
struct Gathered {
    /// The path of its files without an extension.
    stem: PathBuf,
    bytes: u64,
}

/// Merges the smaller packs of ours where there are too many. One that goes away meanwhile is somebody else's work done.
pub(super) fn gather(store: &Store) -> io::Result<()> {
    // One at a time is enough; two processes that merge the same packs only work in vain.
    let Some(_alone) = store.alone_gathering() else { return Ok(()) };
    if is_collecting(store) {
        return Ok(());
    }
    let mut packs = gathered(store)?;
    if packs.len() <= MOST {
        return Ok(());
    }
    packs.sort_by_key(|pack| pack.bytes);
    let mut sum = 0;
    let mut upto = 0;
    for (at, pack) in packs.iter().enumerate() {
        if pack.bytes < sum * FACTOR {
            upto = at + 1;
        }
        sum += pack.bytes;
    }
    packs.truncate(upto.max(2));
    merge(store, &packs)
}

/// Returns the packs of ours that nobody keeps and that no multi-pack-index names.
fn gathered(store: &Store) -> io::Result<Vec<Gathered>> {
    let files = kept::files(store)?;
    let folder = store.objects_dir().join("pack");
    let Some(indexed) = midx::named(&folder) else { return Ok(Vec::new()) };
    // What a dead process kept is reachable, or garbage.
    files.iter().for_each(|path| _ = kept::release(path));
    let mut packs = Vec::new();
    for index in &files {
        let name = index.file_name().expect("it was listed by name");
        let ours = name.as_encoded_bytes().starts_with(OURS.as_bytes());
        let is_index = index.extension().is_some_and(|extension| extension == "idx");
        if !ours || !is_index || indexed.contains(name) {
            continue;
        }
        let stem = index.with_extension("");
        if fs::exists(stem.with_extension("keep"))? {
            continue;
        }
        // It may be gone by now: somebody else merged it.
        if let Ok(meta) = fs::metadata(stem.with_extension("pack")) {
            packs.push(Gathered { stem, bytes: meta.len() });
        }
    }
    Ok(packs)
}

/// Has git pack the objects of some packs into one, then removes these.
///
/// git tries differences between objects of different packs alone. Each batch is a pack of its own, so every pair is tried once.
fn merge(store: &Store, packs: &[Gathered]) -> io::Result<()> {
    let mut wanted = String::new();
    for pack in packs {
        // One that is gone was merged by another process.
        let index =
            pack::index::File::at(pack.stem.with_extension("idx"), store.hash_kind()).map_err(io::Error::other)?;
        index.iter().for_each(|entry| writeln!(wanted, "{}", entry.oid).expect("writing to a string does not fail"));
    }
    let folder = Builder::new().prefix(UNFINISHED).tempdir_in(store.objects_dir())?;
    let call = SETTINGS.iter().fold(store.git(), Git::config);
    let name = call.args(["pack-objects", "-q"]).arg(folder.path().join("pack")).input(wanted).line();
    let name = name.map_err(io::Error::other)?;
    // In place, and on disk, before the others go; they are reachable, or garbage, so nobody needs to keep the new one.
    let new = Kept::adopt(store, &folder.path().join(format!("pack-{name}.pack")), OURS)?;
    let removed = if is_collecting(store) { 0 } else { packs.iter().filter(|pack| remove(&pack.stem)).count() };
    if removed == 0 {
        // Where others' packs cannot be removed, or must not be now, one more would be made each time.
        new.stems().for_each(|stem| _ = remove(stem));
    }
    // One may have been written meanwhile.
    midx::forget_stale(store);
    Ok(())
}

/// Returns whether `git gc` is at work: it ends with an error where a pack goes away that it has listed, and packs ours anyway.
fn is_collecting(store: &Store) -> bool {
    let begun = fs::metadata(store.common_dir().join("gc.pid")).and_then(|meta| meta.modified());
    begun.is_ok_and(|begun| begun.elapsed().is_ok_and(|since| since < ABANDONED))
}

/// Removes a pack; its index goes first, as it is what makes it be seen. Returns whether that is gone.
fn remove(stem: &Path) -> bool {
    let gone = fs::remove_file(stem.with_extension("idx"));
    if gone.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        return false;
    }
    for extension in ["rev", "pack"] {
        // Without an index it is no pack, and in nobody's way.
        let _ = fs::remove_file(stem.with_extension(extension));
    }
    true
}
