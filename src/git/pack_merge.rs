//! Merges our packs as they accumulate: each recorded batch writes one.
//!
//! Skips packs that a process keeps and packs that a multi-pack-index names. Sizes form a geometric
//! series, as with `git repack --geometric`, so each byte is copied a logarithmic number of times.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::odb::pack;
use tempfile::Builder;

use super::keep_pack::{self, KeepGuard, OURS};
use super::midx;
use super::pack::UNFINISHED;
use super::program::Git;
use super::store::Store;

/// Merge above this number of packs. git's own limit for a full repack is 50.
const MOST: usize = 20;

/// Each remaining pack is at least this many times as large as all smaller ones together.
const FACTOR: u64 = 2;

/// A `gc.pid` older than this is stale, as in git.
const ABANDONED: Duration = Duration::from_secs(12 * 60 * 60);

/// Settings that override the configuration: one pack, large files undeltified, no sync, because
/// the pack is synced when it is installed.
const SETTINGS: [&str; 5] =
    ["pack.packSizeLimit=0", "pack.window=10", "pack.windowMemory=64m", "core.bigFileThreshold=4m", "core.fsync=none"];

/// A pack of ours that no process keeps.
struct Gathered {
    /// The path of its files without the extension.
    stem: PathBuf,
    bytes: u64,
}

/// Merges the smaller packs of ours if there are too many. A pack that disappears was merged by
/// another process.
pub(super) fn gather(store: &Store) -> io::Result<()> {
    // One process at a time: a second would only repeat the work.
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

/// Returns the packs of ours that no process keeps and no multi-pack-index names.
fn gathered(store: &Store) -> io::Result<Vec<Gathered>> {
    let files = keep_pack::files(store)?;
    let folder = store.objects_dir().join("pack");
    let Some(indexed) = midx::covered_indices(&folder) else { return Ok(Vec::new()) };
    // The packs of dead processes are reachable or garbage.
    files.iter().for_each(|path| _ = keep_pack::release(path));
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
        // Another process may have merged it.
        if let Ok(meta) = fs::metadata(stem.with_extension("pack")) {
            packs.push(Gathered { stem, bytes: meta.len() });
        }
    }
    Ok(packs)
}

/// Lets git write the objects of some packs into one, then removes these packs.
///
/// git looks for deltas only between objects of different packs. Each batch is its own pack, so
/// every pair is tried once.
fn merge(store: &Store, packs: &[Gathered]) -> io::Result<()> {
    let mut oids = String::new();
    for pack in packs {
        // Another process may have merged it.
        let index =
            pack::index::File::at(pack.stem.with_extension("idx"), store.hash_kind()).map_err(io::Error::other)?;
        index.iter().for_each(|entry| writeln!(oids, "{}", entry.oid).expect("writing to a string does not fail"));
    }
    let folder = Builder::new().prefix(UNFINISHED).tempdir_in(store.objects_dir())?;
    let call = SETTINGS.iter().fold(store.git(), Git::config);
    let name = call.args(["pack-objects", "-q"]).arg(folder.path().join("pack")).input(oids).line();
    let name = name.map_err(io::Error::other)?;
    // The new pack is installed and synced before the old ones go. Its objects are reachable or
    // garbage, so it needs no `.keep` file.
    let new = KeepGuard::adopt(store, &folder.path().join(format!("pack-{name}.pack")), OURS)?;
    let removed = if is_collecting(store) { 0 } else { packs.iter().filter(|pack| remove(&pack.stem)).count() };
    if removed == 0 {
        // If the old packs cannot be removed now, drop the new one; otherwise one more would remain
        // each time.
        new.stems().for_each(|stem| _ = remove(stem));
    }
    // git may have written one meanwhile.
    midx::forget_stale(store);
    Ok(())
}

/// Returns true while `git gc` runs: it fails if a pack that it listed disappears, and merges our
/// packs anyway.
fn is_collecting(store: &Store) -> bool {
    let begun = fs::metadata(store.common_dir().join("gc.pid")).and_then(|meta| meta.modified());
    begun.is_ok_and(|begun| begun.elapsed().is_ok_and(|since| since < ABANDONED))
}

/// Removes a pack, index first because the index makes it visible. Returns true if the index is
/// gone.
fn remove(stem: &Path) -> bool {
    let gone = fs::remove_file(stem.with_extension("idx"));
    if gone.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        return false;
    }
    for extension in ["rev", "pack"] {
        // Without an index the pack is invisible and harmless.
        let _ = fs::remove_file(stem.with_extension(extension));
    }
    true
}
