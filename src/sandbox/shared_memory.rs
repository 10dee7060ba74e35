//! Gives the workers of an attempt without bubblewrap shared memory of their own.
//!
//! The supervisor mounts an empty folder over the machine's, in a mount namespace of its own and of
//! all that it starts. The folder ends with the last of these processes.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;

use rustix::mount::MountFlags;
use serde::{Deserialize, Serialize};

use super::Confinement;
use super::access_map::{Access, AccessMap};
use super::default_paths::SHARED_MEMORY;
use super::overlay;

/// The bytes of the limit for which there may be one file.
const BYTES_FOR_FILE: u64 = 4096;

/// Shared memory to mount.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SharedMemory {
    /// The limit in bytes, or `None` for the kernel's own.
    pub(super) most: Option<u64>,
}

impl SharedMemory {
    /// Moves this process, which must have one thread, into its namespaces and mounts it.
    pub(crate) fn enter(self) -> Result<(), Error> {
        const KIND: &CStr = c"tmpfs";
        // An empty file takes memory of the kernel's, which a size does not bound.
        let bounds = self.most.map(|most| format!(",size={most},nr_inodes={}", most / BYTES_FOR_FILE + 2));
        let options = format!("mode=1777{}", bounds.unwrap_or_default());
        let options = CString::new(options).expect("numbers hold no zero byte");
        overlay::enter().map_err(|error| Error("enter a mount namespace", error))?;
        let mounted =
            rustix::mount::mount(KIND, SHARED_MEMORY, KIND, MountFlags::NODEV | MountFlags::NOSUID, &*options);
        mounted.map_err(|error| Error("mount the worker's own /dev/shm", error))
    }

    /// Tests whether it can be mounted and used. The process must end afterwards, because it
    /// changed namespaces.
    pub(super) fn try_out(self) -> bool {
        let file = Path::new(SHARED_MEMORY).join("git-handoff");
        self.enter().is_ok() && fs::write(file, "x").is_ok()
    }
}

impl Confinement {
    /// Returns the shared memory to mount for an attempt, or `None` if bubblewrap mounts it, if it
    /// cannot be mounted, if a link leads to the machine's, or if it would hide a path that the
    /// worker is given.
    pub(super) fn shared_memory(&self, map: &AccessMap, most: Option<u64>) -> Option<SharedMemory> {
        let mut places = map.places();
        let hides = places.any(|(place, access)| place.starts_with(SHARED_MEMORY) && access != Access::Hidden);
        let is_folder = fs::symlink_metadata(SHARED_MEMORY).is_ok_and(|found| found.is_dir());
        (self.bwrap.is_none() && self.mounts_shared && is_folder && !hides).then_some(SharedMemory { most })
    }
}

/// Why it could not be mounted.
#[derive(Debug, thiserror::Error)]
#[error("cannot {0}")]
pub(crate) struct Error(&'static str, #[source] rustix::io::Errno);
