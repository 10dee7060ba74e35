//! Small files that this program keeps for itself below `handoff` of the git directory, where neither a commit nor a remote can put
//! one: in each folder one a name, whole or not there.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::folder::entries;
use super::store::Store;

/// How far which run was verified.
pub const VERIFIED: &str = "verified";

/// What which remote has shown.
pub const REMOTES: &str = "remotes";

/// Which runs were deleted here, and when and by whom.
pub const DELETED: &str = "deleted";

/// What the name of a file begins with until it is whole: no name of ours is encoded like that.
const UNFINISHED: &str = ".tmp";

/// Returns the file of a name, which is encoded as a segment, whether it is there or not.
pub fn path(store: &Store, folder: &str, name: &str) -> PathBuf {
    below(store, folder).join(name)
}

/// Reads a file, of which more than `limit` bytes are not looked at.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Nobody makes us wait for the other end of a pipe.
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file in the place of the one that has its name.
pub fn put(store: &Store, folder: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder_path = below(store, folder);
    fs::create_dir_all(&folder_path)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder_path)?;
    file.write_all(bytes)?;
    // A name that comes to disk before its bytes is that of an empty file.
    file.as_file().sync_data()?;
    file.persist(path(store, folder, name))?;
    Ok(())
}

/// Returns the files of a folder, in order of their names.
pub fn all(store: &Store, folder: &str) -> Vec<PathBuf> {
    entries(&below(store, folder), |name| !name.starts_with(UNFINISHED))
}

/// Returns the files that are not whole: those that are being written now, and those whose writer was killed.
pub fn unfinished(store: &Store) -> Vec<PathBuf> {
    let in_one = |folder| entries(&below(store, folder), |name| name.starts_with(UNFINISHED));
    [VERIFIED, REMOTES, DELETED].into_iter().flat_map(in_one).collect()
}

fn below(store: &Store, folder: &str) -> PathBuf {
    store.common_dir().join("handoff").join(folder)
}
