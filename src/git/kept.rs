//! Objects that no prune takes although no ref reaches them yet: packs of ours with a `.keep` file, which git honours.
//!
//! The `.keep` file is there before the pack can be seen, and holds a lock of the operating system, which ends with the process
//! that has it: one that can be locked was left by a process that died, and what it kept was never recorded or is reachable.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::NamedTempFile;

use super::pack::{self, Finished};
use super::store::{Durability, Store};
use crate::model::digest::{Digest, Hasher};

/// What the names of our packs begin with, so that they can be told from git's: the word "handoff" as hexadecimal digits,
/// where git has the first of a hash. Programs that want a hash there find one.
pub(super) const OURS: &str = "pack-68616e646f6666";

/// How our `.keep` files begin.
const MARK: &str = "git-handoff: ";

/// How many packs this process has put in place.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Returns how many packs this process has put in place.
pub(super) fn written() -> usize {
    WRITTEN.load(Ordering::Relaxed)
}

/// Objects that are safe from every `git prune`, `git gc` and `git repack` for as long as this lives.
///
/// Whoever is to name them from a ref holds on to this until the ref is moved. What no ref reaches then is for git to prune.
#[derive(Clone, Debug, Default)]
#[must_use = "the objects are git's to prune as soon as this is dropped"]
pub struct Kept(Vec<Arc<Pack>>);

/// One pack that is kept.
#[derive(Debug)]
struct Pack {
    /// The path of its files without an extension.
    stem: PathBuf,
    /// The files themselves: what somebody removes nevertheless can be put back.
    objects: File,
    index: File,
    /// Holds the lock.
    _keep: File,
}

impl Kept {
    /// Keeps what another one keeps as well.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the paths of the packs, without extensions.
    pub(super) fn stems(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|pack| pack.stem.as_path())
    }

    /// Puts a pack and its index in place, kept before they can be seen.
    pub(super) fn install(store: &Store, finished: Finished) -> io::Result<Self> {
        let folder = folder(store)?;
        if store.durability() == Durability::Strict {
            force_both(&finished)?;
        }
        WRITTEN.fetch_add(1, Ordering::Relaxed);
        let length = store.hash_kind().len_in_hex();
        let (stem, keep) = claim(&folder, OURS, length, finished.pack.path(), finished.checksum.as_slice())?;
        let place = |file: NamedTempFile, extension| {
            file.persist_noclobber(stem.with_extension(extension)).map_err(|error| error.error)
        };
        let placed = place(finished.pack, "pack").and_then(|pack| Ok((pack, place(finished.index, "idx")?)));
        let (pack, index) = placed.inspect_err(|_| {
            // Without its index it is no pack yet; what cannot be removed is kept by nothing, and seen by nobody.
            let _ = fs::remove_file(stem.with_extension("pack"));
            unkeep(&stem);
        })?;
        let kept = Self(vec![Arc::new(Pack { stem, objects: pack, index, _keep: keep })]);
        if store.durability() == Durability::Strict {
            File::open(&folder)?.sync_all()?;
        }
        Ok(kept)
    }

    /// Takes over a pack that git wrote elsewhere, with all its files, kept before it can be seen. `prefix` begins its new name.
    pub(super) fn adopt(store: &Store, pack: &Path, prefix: &str) -> io::Result<Self> {
        let folder = folder(store)?;
        WRITTEN.fetch_add(1, Ordering::Relaxed);
        let length = store.hash_kind().len_in_hex();
        let (stem, keep) = claim(&folder, prefix, length, pack, &[])?;
        let adopted = || -> io::Result<(File, File)> {
            let mut files = Vec::new();
            for entry in fs::read_dir(pack.parent().expect("a pack is in a folder"))? {
                let path = entry?.path();
                let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_owned);
                if path.file_stem() == pack.file_stem()
                    && let Some(extension) = extension.filter(|extension| extension != "keep")
                {
                    files.push((path, extension));
                }
            }
            // The index is what makes a pack be seen.
            files.sort_by_key(|(_, extension)| extension == "idx");
            for (path, extension) in &files {
                if store.durability() == Durability::Strict {
                    pack::force(&File::open(path)?)?;
                }
                fs::rename(path, stem.with_extension(extension))?;
            }
            if store.durability() == Durability::Strict {
                File::open(&folder)?.sync_all()?;
            }
            Ok((File::open(stem.with_extension("pack"))?, File::open(stem.with_extension("idx"))?))
        };
        let (pack, index) = adopted().inspect_err(|_| unkeep(&stem))?;
        Ok(Self(vec![Arc::new(Pack { stem, objects: pack, index, _keep: keep })]))
    }

    /// Puts back what was removed although it was to be kept; returns whether anything was.
    pub fn put_back(&self) -> io::Result<bool> {
        let mut any = false;
        for kept in &self.0 {
            for (file, extension) in [(&kept.objects, "pack"), (&kept.index, "idx")] {
                let path = kept.stem.with_extension(extension);
                if fs::exists(&path)? {
                    continue;
                }
                let folder = path.parent().expect("a pack is in a folder");
                fs::create_dir_all(folder)?;
                let mut copy = pack::temporary(folder)?;
                let mut from = file;
                from.rewind()?;
                io::copy(&mut from, &mut copy)?;
                pack::force(copy.as_file())?;
                copy.persist(&path).map_err(|error| error.error)?;
                any = true;
            }
        }
        Ok(any)
    }
}

impl Drop for Pack {
    fn drop(&mut self) {
        unkeep(&self.stem);
    }
}

/// Forces a pack and its index to disk at the same time: one commit of the file system's journal is for both.
fn force_both(finished: &Finished) -> io::Result<()> {
    let index = || pack::force(finished.index.as_file());
    std::thread::scope(|scope| {
        let forcing = std::thread::Builder::new().spawn_scoped(scope, index);
        pack::force(finished.pack.as_file())?;
        match forcing {
            Ok(forcing) => forcing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Where there is no thread to be had, one after the other.
            Err(_) => index(),
        }
    })
}

/// Lets git have a pack; a file that cannot be removed now is found by `doctor`.
fn unkeep(stem: &Path) {
    let _ = fs::remove_file(stem.with_extension("keep"));
}

/// Returns the folder of packs.
pub(super) fn folder(store: &Store) -> io::Result<PathBuf> {
    let folder = store.objects_dir().join("pack");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Takes a name that no pack ever had, by putting its `.keep` file in place.
///
/// It is a hash of the random name of the temporary file: a name that was used before may stand on the list of what a running
/// `git repack` is about to remove. The file is locked and written before it has its name: one without our words would be nobody's
/// to remove, if the process died in between or the disk was full.
fn claim(folder: &Path, prefix: &str, length: usize, unique: &Path, more: &[u8]) -> io::Result<(PathBuf, File)> {
    let mut keep = unnamed(folder)?;
    for turn in 0_u64.. {
        let mut hasher = Hasher::default();
        hasher.update(unique.as_os_str().as_encoded_bytes());
        hasher.update(more);
        hasher.update(&turn.to_be_bytes());
        let digest: Digest = hasher.finish().0;
        let mut name = prefix.to_owned();
        name.push_str(&digest.hex()[..length + "pack-".len() - prefix.len()]);
        let stem = folder.join(name);
        let claimed = match keep.persist_noclobber(stem.with_extension("keep")) {
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                keep = refused.file;
                continue;
            }
            other => other.map_err(|refused| refused.error)?,
        };
        if !fs::exists(stem.with_extension("pack"))? {
            return Ok((stem, claimed));
        }
        unkeep(&stem);
        keep = unnamed(folder)?;
    }
    unreachable!("names do not run out")
}

/// Makes a `.keep` file that has no name yet, locked and with our words in it.
fn unnamed(folder: &Path) -> io::Result<NamedTempFile> {
    let mut keep = pack::temporary(folder)?;
    keep.as_file().lock()?;
    writeln!(keep, "{MARK}process {} keeps this until a ref reaches it", std::process::id())?;
    Ok(keep)
}

/// Returns the `.keep` files that processes of ours left that are dead, in order.
pub fn forsaken(store: &Store) -> Result<Vec<PathBuf>, io::Error> {
    let mut found: Vec<PathBuf> = files(store)?.into_iter().filter(|path| is_forsaken(path)).collect();
    found.sort();
    Ok(found)
}

/// Removes a `.keep` file if the process that left it is dead; returns whether it is gone.
pub fn release(keep: &Path) -> bool {
    is_forsaken(keep) && fs::remove_file(keep).is_ok()
}

/// Returns the files in the folder of packs.
pub(super) fn files(store: &Store) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(store.objects_dir().join("pack")) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn is_forsaken(path: &Path) -> bool {
    if path.extension().is_none_or(|extension| extension != "keep") {
        return false;
    }
    let Ok(mut file) = File::open(path) else { return false };
    let mut begins = [0; MARK.len()];
    file.read_exact(&mut begins).is_ok() && begins == *MARK.as_bytes() && file.try_lock().is_ok()
}
