//! Merges the packs of ours as they gather: each recorded batch leaves one.
//!
//! Packs that somebody keeps are left alone, and so are those that a multi-pack-index names, which would miss them. Sizes are
//! kept in proportion, as `git repack --geometric` does it, so that a byte is copied a logarithmic number of times.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::odb::pack;

use super::kept::{self, Kept, OURS};
use super::midx;
use super::pack::PackWriter;
use super::program;
use super::store::Store;

/// More packs than this are too many; git's own limit, beyond which it packs everything anew, is 50.
const MOST: usize = 20;

/// Each pack that is left is at least so many times as large as all smaller ones together.
const FACTOR: u64 = 2;

/// A `gc.pid` that is older than this was left behind, as git sees it.
const ABANDONED: Duration = Duration::from_secs(12 * 60 * 60);

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

/// Packs everything that gathered into one pack of git's, with differences, so that the next `git gc` is not the one to pay.
///
/// Nothing is lost: what nobody refers to is packed as well, and stays as long as git's own rules say.
pub(super) fn pack_up(store: &Store) -> Result<(), program::Error> {
    let packs = gathered(store).map_err(program::Error::Spawn)?;
    if packs.len() < 2 {
        return Ok(());
    }
    let names = packs.iter().filter_map(|pack| pack.stem.file_name()?.to_str()).map(|name| format!("{name}.pack\n"));
    let call = store.git().args(["pack-objects", "-q", "--stdin-packs"]).arg(store.objects_dir().join("pack/pack"));
    call.input(names.collect::<String>()).run()?;
    // The new pack is forced to disk by git, which does so with packs unless it is told otherwise.
    for pack in &packs {
        // One that stays is only there twice.
        let _ = remove(&pack.stem);
    }
    midx::forget_stale(store);
    Ok(())
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

/// Copies what some packs hold into a new one, then removes them.
fn merge(store: &Store, packs: &[Gathered]) -> io::Result<()> {
    let mut writer = PackWriter::new(&kept::folder(store)?, store.hash_kind())?;
    let mut merged = Vec::new();
    for pack in packs {
        // One that is gone, or not as we write packs, stays out; what was copied of it does no harm.
        if copy(store, &mut writer, &pack.stem).is_ok_and(|whole| whole) {
            merged.push(pack);
        }
    }
    if merged.len() < 2 {
        return Ok(());
    }
    // In place, and on disk, before the others go; they are reachable, or garbage, so nobody needs to keep the new one.
    let new = Kept::install(store, writer.finish()?)?;
    let removed = if is_collecting(store) { 0 } else { merged.iter().filter(|pack| remove(&pack.stem)).count() };
    if removed == 0 {
        // Where others' packs cannot be removed, or must not be now, one more would be made each time.
        for stem in new.stems() {
            let _ = remove(stem);
        }
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

/// Copies the entries of one pack; refuses one that holds differences between objects, which mean nothing elsewhere.
fn copy(store: &Store, writer: &mut PackWriter, stem: &Path) -> io::Result<bool> {
    let hash = store.hash_kind();
    let index = pack::index::File::at(stem.with_extension("idx"), hash).map_err(io::Error::other)?;
    let mut file = File::open(stem.with_extension("pack"))?;
    let size = file.metadata()?.len();
    let mut entries: Vec<_> = index.iter().collect();
    entries.sort_by_key(|entry| entry.pack_offset);
    let ends = entries.iter().skip(1).map(|entry| entry.pack_offset).chain([size - hash.len_in_bytes() as u64]);
    for (entry, end) in entries.iter().zip(ends) {
        let Some(crc) = entry.crc32 else { return Ok(false) };
        if !writer.copy(entry.oid, &mut file, entry.pack_offset..end, crc)? {
            return Ok(false);
        }
    }
    Ok(true)
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
