//! Remembers the folders of a repository's worktrees, so that they are found after the repository
//! was renamed, or its settings name another place.
//!
//! A file in the git directory holds the name of the folder, the path and the inode that the git
//! directory had, and every folder that was used. A copied repository has a copy of that file: it
//! gets a name of its own, because two drivers must not share worktrees. A rename within a file
//! system keeps the inode, and a copy has another one. A repository that was restored from a backup
//! is a copy, too, and no longer finds the worktrees that it had.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::git::private_files;
use crate::git::store::Store;
use crate::model::digest::Digest;

/// The folder of the file below our private files.
const FOLDER: &str = "worktrees";

/// The name of the file.
const FILE: &str = "folders";

/// The largest file.
const LIMIT: u64 = 1 << 20;

/// The device and the inode of a folder.
type Id = (u64, u64);

/// The folders of a repository's worktrees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFolders {
    /// The name of its folder among those of other repositories.
    pub name: String,
    /// The git directory that this was written for, and its device and inode.
    of: PathBuf,
    id: Option<Id>,
    /// The folders that were used and still exist.
    pub used: Vec<PathBuf>,
}

impl KnownFolders {
    /// Reads the folders of a repository. Changes nothing.
    pub fn read(store: &Store) -> Self {
        let common = store.common_dir();
        let known = Self::parse(&private_files::path(store, FOLDER, FILE)).filter(|known| !known.is_copied(&common));
        let known =
            known.unwrap_or_else(|| Self { name: fresh_name(&common), of: PathBuf::new(), id: None, used: Vec::new() });
        Self { used: known.used.into_iter().filter(|folder| folder.is_dir()).collect(), ..known }
    }

    /// Records that worktrees are made in a folder.
    pub(super) fn record(store: &Store, folder: &Path) -> io::Result<()> {
        let known = Self::read(store);
        let common = store.common_dir();
        let Some(name) = folder.file_name() else { return Ok(()) };
        let id = id_of(&common);
        if (&known.of, known.id) == (&common, id)
            && known.name.as_bytes() == name.as_bytes()
            && known.used.iter().any(|one| one == folder)
        {
            return Ok(());
        }
        let earlier = known.used.iter().map(PathBuf::as_path).filter(|one| *one != folder);
        let id = id.map(|(device, inode)| format!("{device}:{inode}")).unwrap_or_default();
        let parts: Vec<&[u8]> = [Path::new(name), &common, Path::new(&id), folder]
            .into_iter()
            .chain(earlier)
            .map(|path| path.as_os_str().as_bytes())
            .collect();
        // No path contains a zero byte.
        private_files::put(store, FOLDER, FILE, &parts.join(&0))
    }

    fn parse(file: &Path) -> Option<Self> {
        let bytes = private_files::read(file, LIMIT).ok()?;
        let mut parts = bytes.split(|byte| *byte == 0).map(OsStr::from_bytes);
        let name = parts.next()?.to_str().filter(|name| is_name(name))?.to_owned();
        let of = parts.next()?.into();
        let (device, inode) = parts.next()?.to_str()?.split_once(':')?;
        let id = Some((device.parse().ok()?, inode.parse().ok()?));
        Some(Self { name, of, id, used: parts.map(PathBuf::from).collect() })
    }

    /// Returns true if this was written for another repository. Between file systems, only the one
    /// that is still there tells a copy from a move.
    fn is_copied(&self, common: &Path) -> bool {
        let (Some(was), Some(is)) = (self.id, id_of(common)) else { return false };
        if was.0 == is.0 {
            return was.1 != is.1;
        }
        let file = self.of.join("handoff").join(FOLDER).join(FILE);
        self.of != common && Self::parse(&file).is_some_and(|there| there.name == self.name)
    }
}

fn id_of(path: &Path) -> Option<Id> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Returns true for a single name that is no other repository's to choose.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns a name for a repository that has none yet. The inode distinguishes it from a renamed one
/// that was at the same path.
fn fresh_name(common: &Path) -> String {
    let inode = id_of(common).map_or(0, |(_, inode)| inode);
    let of = [common.as_os_str().as_bytes(), &[0], &inode.to_le_bytes()].concat();
    Digest::compute(&of).hex()[..16].to_owned()
}
