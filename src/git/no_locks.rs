//! Explains failures on file systems that have no locks, such as NFS without its lock daemon.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::quoted_path::unquoted;

/// A file system has no locks.
#[derive(Debug, thiserror::Error)]
#[error("the file system at {} ({kind}) has no locks", mount.display())]
pub struct NoLocks {
    /// Its mount point.
    pub mount: PathBuf,
    /// Its kind, such as `nfs4`.
    pub kind: String,
    source: io::Error,
}

impl NoLocks {
    /// Adds the file system to an error of locking a file, if it says that there are no locks.
    pub fn explain(path: &Path, error: io::Error) -> io::Error {
        let refusals = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP];
        if !error.raw_os_error().is_some_and(|code| refusals.iter().any(|errno| errno.raw_os_error() == code)) {
            return error;
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (mount, kind) = mount_of(&mounts, &real).unwrap_or_else(|| (real, "unknown kind".to_owned()));
        io::Error::new(io::ErrorKind::Unsupported, Self { mount, kind, source: error })
    }

    /// Returns the explanation that an error is made of, if any.
    pub fn within<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
    }
}

/// Returns the mount point of a path and the kind of its file system.
fn mount_of(mounts: &str, path: &Path) -> Option<(PathBuf, String)> {
    let parsed = mounts.lines().filter_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        let mount = unquoted(format!("\"{}\"", fields.split(' ').nth(4)?).as_bytes());
        Some((PathBuf::from(OsStr::from_bytes(&mount)), kind.split(' ').next()?.to_owned()))
    });
    // A later mount hides an earlier one at the same place.
    parsed.filter(|(mount, _)| path.starts_with(mount)).max_by_key(|(mount, _)| mount.components().count())
}
