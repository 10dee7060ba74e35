//! How this repository takes part in shared runs, and which repository it is.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use serde::{Deserialize, Serialize};

use crate::git::private_files;
use crate::git::store::Store;
use crate::model::digest::Digest;
use crate::model::driver::DriverId;
use crate::model::name::RunId;

use super::pushed::Pushed;

/// The most bytes of a private file.
const LARGEST: u64 = 64 << 10;

/// The file with the id that a system got when it was installed.
const MACHINE_ID: &str = "/etc/machine-id";

/// The most drivers of a repository that are remembered for a run.
const MOST_DRIVERS: usize = 64;

/// How this repository takes part in a shared run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sharing {
    /// The remote, as `--via` or `push` named it.
    pub remote: String,
    /// The leaf hash of entry 0.
    pub first: Digest,
    /// The drivers of this repository, or `None` if none has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<OwnDrivers>,
}

/// The last driver of a repository. Only the same repository can prove by its lock that it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastDriver {
    /// The driver.
    pub id: DriverId,
    /// The repository, which a copy is not.
    pub home: Home,
}

/// The drivers of a repository, which all but the last have ended: its lock lets one in.
///
/// A driver can be killed before it took over what the one before it left, so the last is not
/// enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnDrivers {
    /// The last driver.
    pub id: DriverId,
    /// The repository, which a copy is not.
    pub home: Home,
    /// The drivers before it, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<DriverId>,
}

impl OwnDrivers {
    /// Adds a new driver to those that a repository had, unless they belong to another repository.
    pub fn followed_by(before: Option<Self>, id: DriverId, home: Home) -> Self {
        let before = before.filter(|before| before.home == home);
        let earlier = before.into_iter().flat_map(|before| std::iter::once(before.id).chain(before.earlier));
        Self { id, home, earlier: earlier.take(MOST_DRIVERS).collect() }
    }
}

impl Sharing {
    /// Reads how the repository takes part in a run, or returns `None`.
    ///
    /// A run that was only pushed is driven through the remote that it was pushed to, if it is
    /// shared at all.
    pub fn read(store: &Store, run: &RunId) -> Option<Self> {
        Self::read_joined(store, run).or_else(|| {
            let Pushed { first, remotes, .. } = Pushed::read(store, run)?;
            Some(Self { remote: remotes.into_iter().next()?, first, driver: None })
        })
    }

    /// Returns true if this repository joined a shared run.
    pub fn is_joined(store: &Store, run: &RunId) -> bool {
        Self::read_joined(store, run).is_some()
    }

    fn read_joined(store: &Store, run: &RunId) -> Option<Self> {
        let path = private_files::path(store, private_files::VIA, &run.encoded());
        serde_json::from_slice(&private_files::read(&path, LARGEST).ok()?).ok()
    }
}

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
    pub fn find(store: &Store) -> io::Result<Self> {
        let folder = store.common_dir().canonicalize()?;
        // Not every system has the file; then the name alone tells machines apart.
        let id = std::fs::read(MACHINE_ID).unwrap_or_default();
        let (system, inode) = (rustix::system::uname(), folder.metadata()?.ino().to_string());
        let parts = [&id, system.nodename().to_bytes(), folder.as_os_str().as_bytes(), inode.as_bytes()];
        Ok(Self(Digest::compute(&parts.join(&0))))
    }
}
