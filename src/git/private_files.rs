//! Private files below `handoff` in the git directory, which neither a commit nor a remote can
//! write. Each name in a folder has at most one complete file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::flush;
use super::folder::entries;
use super::store::{Durability, Store};
use crate::model::name::RunId;

/// The last verified entry of each run.
pub const VERIFIED: &str = "verified";

/// The last verified entry of each thread.
pub const VERIFIED_THREADS: &str = "verified-threads";

/// The state that each remote last showed.
pub const REMOTES: &str = "remotes";

/// The runs deleted in this clone, with time and key.
pub const DELETED: &str = "deleted";

/// The remote through which each shared run is driven.
pub const VIA: &str = "via";

/// The beats of each shared run that were seen, and since when.
pub const VIA_SEEN: &str = "via-seen";

/// The remotes that each run was pushed to.
pub const PUSHED: &str = "pushed";

/// Summaries of sealed runs, for lists.
pub const LISTS: &str = "lists";

/// The outputs of checks with held-out files, in a folder for each run.
const CHECKS: &str = "checks";

/// The prefix of incomplete files. No encoded name starts with it.
const UNFINISHED: &str = ".tmp";

/// Returns the path for a name, which is encoded as one segment. The file may not exist.
pub fn path(store: &Store, folder: &str, name: &str) -> PathBuf {
    below(store, folder).join(name)
}

/// Returns the folder for the outputs of a run's checks with held-out files.
pub fn checks_of(run: &RunId) -> String {
    format!("{CHECKS}/{}", run.encoded())
}

/// Removes a folder with its files, if it exists.
pub fn remove_folder(store: &Store, folder: &str) -> io::Result<()> {
    match fs::remove_dir_all(below(store, folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads at most `limit` bytes of a file.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a named pipe must not block.
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces the file for a name.
pub fn put(store: &Store, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder_path = below(store, folder);
    let grown = flush::make_folders(&folder_path)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&folder_path)?;
    file.write_all(bytes)?;
    // Without a sync, a crash could leave the name with an empty file.
    file.as_file().sync_data()?;
    file.persist(path(store, folder, name))?;
    if store.durability() == Durability::Strict {
        flush::folder(&folder_path)?;
        grown.iter().try_for_each(|parent| flush::folder(parent))?;
    }
    Ok(())
}

/// Returns the files of a folder, sorted by name.
pub fn all(store: &Store, folder: &str) -> Vec<PathBuf> {
    entries(&below(store, folder), |name| !name.starts_with(UNFINISHED))
}

/// Returns incomplete files: those being written now and those of killed processes.
pub fn unfinished(store: &Store) -> Vec<PathBuf> {
    let checks = entries(&below(store, CHECKS), |_| true);
    let folders = [VERIFIED, VERIFIED_THREADS, REMOTES, DELETED, VIA, VIA_SEEN, PUSHED, LISTS];
    let folders = folders.map(|folder| below(store, folder)).into_iter().chain(checks);
    folders.flat_map(|folder| entries(&folder, |name| name.starts_with(UNFINISHED))).collect()
}

fn below(store: &Store, folder: &str) -> PathBuf {
    store.common_dir().join("handoff").join(folder)
}
