//! Tells a repository from its copies.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

use crate::git::store::Store;
use crate::model::digest::Digest;

/// The file with the id that a system got when it was installed.
const MACHINE_ID: &str = "/etc/machine-id";

/// A git directory on a machine: a digest of the machine's id and name, and of the directory's path
/// and inode.
///
/// A copy has another one, even if it has the same path on another machine. A copy of a whole
/// machine under the same name has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Home(Digest);

impl Home {
    /// Returns the place of a repository.
    pub fn of(store: &Store) -> io::Result<Self> {
        let folder = store.common_dir().canonicalize()?;
        // Not every system has the file; then the name alone tells machines apart.
        let id = std::fs::read(MACHINE_ID).unwrap_or_default();
        let (system, inode) = (rustix::system::uname(), folder.metadata()?.ino().to_string());
        let parts = [&id, system.nodename().to_bytes(), folder.as_os_str().as_bytes(), inode.as_bytes()];
        Ok(Self(Digest::of(&parts.join(&0))))
    }
}
