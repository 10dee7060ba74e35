//! Whether what lies at a path is still what was found there: whoever mounts it looks the path up again, and follows links in it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

/// How something is opened to be looked at.
#[cfg(target_os = "linux")]
const LOOKED: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOKED: OFlags = OFlags::RDONLY;

/// What lay at a path, which leads through no link, by the numbers that its file system knows it by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::worker) struct Seen {
    path: OsString,
    device: u64,
    number: u64,
}

impl Seen {
    /// Looks at what lies at a path; fails where a link lies there, or on the way.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let stat = rustix::fs::fstat(open(path)?)?;
        if FileType::from_raw_mode(stat.st_mode).is_symlink() {
            return Err(io::Error::other("a link lies there"));
        }
        #[allow(clippy::useless_conversion, reason = "the numbers are narrower on some machines")]
        let (device, number) = (u64::from(stat.st_dev), u64::from(stat.st_ino));
        Ok(Self { path: path.as_os_str().to_owned(), device, number })
    }

    /// Fails where something else lies there now, or a link leads elsewhere.
    pub(super) fn stays(&self) -> Result<(), Changed> {
        let now = Self::at(Path::new(&self.path));
        match now {
            Ok(now) if (now.device, now.number) == (self.device, self.number) => Ok(()),
            // Nobody gets there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            _ => Err(Changed(self.path.clone())),
        }
    }
}

/// Opens a path one name after the other, following no link.
fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = LOOKED | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::open("/", flags, Mode::empty())?;
    for part in path.components() {
        if let Component::Normal(name) = part {
            here = rustix::fs::openat(&here, name, flags, Mode::empty())?;
        }
    }
    Ok(here)
}

/// Something else lies at a path than was found there.
#[derive(Debug, thiserror::Error)]
#[error("{} was replaced while the worker was about to start", Path::new(.0).display())]
pub(in crate::worker) struct Changed(OsString);
