//! Protects new objects from pruning until a ref reaches them: packs with a `.keep` file, which git
//! respects.
//!
//! The `.keep` file exists before the pack is visible and holds an operating system lock, which
//! ends with its process. A `.keep` file that can be locked was left by a dead process; its objects
//! are reachable or were never recorded.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::no_locks::NoLocks;
use super::pack::{self, Finished};
use super::store::{Durability, Store};
use crate::model::digest::{Digest, Hasher};

/// The prefix of our packs' names, to tell them from git's: "handoff" in hexadecimal. Programs that
/// expect a hash find hexadecimal digits.
pub(super) const OURS: &str = "pack-68616e646f6666";

/// The first bytes of our `.keep` files.
const MARK: &str = "git-handoff: ";

/// The second part of a `.keep` file whose process handed the objects over.
const HANDED_OVER: &str = "handed over to the driver of an attempt\n";

/// How long such a file is respected without a lock: a driver takes it over soon, or never.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The number of packs that this process has installed.
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of packs that this process has installed.
pub(super) fn written() -> usize {
    WRITTEN.load(Ordering::Relaxed)
}

/// Protects objects from `git prune`, `git gc` and `git repack` while it lives.
///
/// Hold this until a ref that reaches the objects has been updated. Afterwards git may prune the
/// unreachable ones.
#[derive(Clone, Debug, Default)]
#[must_use = "the objects are git's to prune as soon as this is dropped"]
pub struct KeepGuard(Vec<Arc<Pack>>);

/// A pack with a `.keep` file.
#[derive(Debug)]
struct Pack {
    /// The path of its files without the extension.
    stem: PathBuf,
    /// Holds the lock.
    keep: File,
    /// True once another guard is to end the protection.
    handed_over: AtomicBool,
}

impl KeepGuard {
    /// Also protects the objects of another guard.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the paths of the packs, without extensions.
    pub(super) fn stems(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|pack| pack.stem.as_path())
    }

    /// Installs a pack and its index; its `.keep` file exists before they are visible.
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
        let placed = place(finished.pack, "pack").and_then(|_| place(finished.index, "idx"));
        placed.inspect_err(|_| {
            // A pack without its index is invisible; if it cannot be removed, nothing keeps it.
            let _ = fs::remove_file(stem.with_extension("pack"));
            unkeep(&stem);
        })?;
        let guard = Self(vec![Pack::guarded(stem, keep)]);
        if store.durability() == Durability::Strict {
            File::open(&folder)?.sync_all()?;
        }
        Ok(guard)
    }

    /// Moves in a pack that git wrote elsewhere, with all its files; its `.keep` file exists before
    /// it is visible. `prefix` starts its new name.
    pub(super) fn adopt(store: &Store, pack: &Path, prefix: &str) -> io::Result<Self> {
        let folder = folder(store)?;
        WRITTEN.fetch_add(1, Ordering::Relaxed);
        let length = store.hash_kind().len_in_hex();
        let (stem, keep) = claim(&folder, prefix, length, pack, &[])?;
        let adopted = || -> io::Result<()> {
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
            // The index makes a pack visible, so it is moved last.
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
            Ok(())
        };
        adopted().inspect_err(|_| unkeep(&stem))?;
        Ok(Self(vec![Pack::guarded(stem, keep)]))
    }

    /// Ends the protection by this process without ending it for git: another process takes it over
    /// by the returned names. If none does, it ends after a day.
    pub fn hand_over(self) -> io::Result<Vec<String>> {
        for pack in &self.0 {
            write_mark(&pack.keep, HANDED_OVER)?;
        }
        let names = self.0.iter().map(|pack| pack_name(pack)).collect();
        self.0.iter().for_each(|pack| pack.handed_over.store(true, Ordering::Relaxed));
        Ok(names)
    }

    /// Takes over the protection of objects that another guard handed over. A pack that is gone was
    /// merged into another one.
    pub fn take_over(store: &Store, names: &[String]) -> io::Result<Self> {
        let folder = folder(store)?;
        let mut packs = Vec::new();
        for name in names {
            if !name.starts_with("pack-") || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not the name of a pack")));
            }
            let stem = folder.join(name);
            if fs::exists(stem.with_extension("idx"))? {
                // In place of the other file at once, so that git always finds one.
                let keep = unnamed(&folder)?.persist(stem.with_extension("keep")).map_err(|error| error.error)?;
                packs.push(Pack::guarded(stem, keep));
            } else {
                unkeep(&stem);
            }
        }
        Ok(Self(packs))
    }
}

fn pack_name(pack: &Pack) -> String {
    let name = pack.stem.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    name.expect("we gave it a name of ASCII letters")
}

impl Pack {
    /// Guards a pack whose `.keep` file this process has locked.
    fn guarded(stem: PathBuf, keep: File) -> Arc<Self> {
        Arc::new(Self { stem, keep, handed_over: AtomicBool::new(false) })
    }
}

impl Drop for Pack {
    fn drop(&mut self) {
        if !*self.handed_over.get_mut() {
            unkeep(&self.stem);
        }
    }
}

/// Syncs a pack and its index in parallel, so that one commit of the file system's journal covers
/// both.
fn force_both(finished: &Finished) -> io::Result<()> {
    let index = || pack::force(finished.index.as_file());
    std::thread::scope(|scope| {
        let forcing = std::thread::Builder::new().spawn_scoped(scope, index);
        pack::force(finished.pack.as_file())?;
        match forcing {
            Ok(forcing) => forcing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Without a thread, sync them one after the other.
            Err(_) => index(),
        }
    })
}

/// Removes the `.keep` file. `doctor` finds one that cannot be removed.
fn unkeep(stem: &Path) {
    let _ = fs::remove_file(stem.with_extension("keep"));
}

/// Returns the folder of packs.
pub(super) fn folder(store: &Store) -> io::Result<PathBuf> {
    let folder = store.objects_dir().join("pack");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Reserves an unused pack name by creating its `.keep` file.
///
/// The name is a hash of the temporary file's random name: a running `git repack` may be about to
/// remove a name that was used before. The file is locked and written before it gets its name;
/// otherwise a crash or a full disk would leave a `.keep` file without our mark, which nothing
/// would ever remove.
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

/// Creates a locked `.keep` file with our mark and no final name yet.
fn unnamed(folder: &Path) -> io::Result<NamedTempFile> {
    let mut keep = pack::temporary(folder)?;
    keep.as_file().lock().map_err(|error| NoLocks::explain(folder, error))?;
    keep.write_all(format!("{MARK}{}", kept_by_us()).as_bytes())?;
    Ok(keep)
}

fn kept_by_us() -> String {
    format!("process {} keeps this until a ref reaches it\n", std::process::id())
}

/// Replaces the content of a `.keep` file. The mark at its beginning is never missing.
fn write_mark(mut keep: &File, words: &str) -> io::Result<()> {
    keep.rewind()?;
    keep.write_all(format!("{MARK}{words}").as_bytes())?;
    keep.set_len((MARK.len() + words.len()) as u64)
}

/// Returns the `.keep` files that dead processes of ours left, sorted.
pub fn forsaken(store: &Store) -> Result<Vec<PathBuf>, io::Error> {
    let mut found: Vec<PathBuf> = files(store)?.into_iter().filter(|path| is_forsaken(path)).collect();
    found.sort();
    Ok(found)
}

/// Removes a `.keep` file if its process is dead. Returns true if it is gone.
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
    let is_ours = file.read_exact(&mut begins).is_ok() && begins == *MARK.as_bytes();
    is_ours && file.try_lock().is_ok() && !is_handed_over(&mut file)
}

/// Returns true if the objects were handed over lately, so that a driver may still take them over.
/// The file was read up to the end of the mark.
fn is_handed_over(file: &mut File) -> bool {
    let mut more = [0; HANDED_OVER.len()];
    if file.read_exact(&mut more).is_err() || more != *HANDED_OVER.as_bytes() {
        return false;
    }
    let age = file.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_none_or(|age| age < PATIENCE)
}
