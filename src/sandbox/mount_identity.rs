//! Checks that a path still leads to the same file: a program that mounts it looks it up again and
//! follows links.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::Word;

/// The flags for opening a file to identify it.
#[cfg(target_os = "linux")]
const FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The identity of the file at a path without links: device and inode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MountIdentity {
    path: Word,
    device: u64,
    number: u64,
}

impl MountIdentity {
    /// Identifies the file at a path. Fails if the path contains a link.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Self::read(path.into(), &open(path)?)
    }

    /// Identifies an open file. Fails if it is a link.
    fn read(path: Word, opened: &OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(opened)?;
        if FileType::from_raw_mode(stat.st_mode).is_symlink() {
            return Err(io::Error::other("a link lies there"));
        }
        #[cfg_attr(
            target_pointer_width = "64",
            expect(clippy::useless_conversion, reason = "the numbers are narrower on other machines")
        )]
        let (device, number) = (u64::from(stat.st_dev), u64::from(stat.st_ino));
        Ok(Self { path, device, number })
    }

    /// Returns true if both are the same file or folder.
    fn is(&self, other: &Self) -> bool {
        (self.device, self.number) == (other.device, other.number)
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Word {
        &self.path
    }

    /// Opens it. Fails if it was replaced.
    pub(crate) fn open(&self) -> Result<OwnedFd, Changed> {
        let opened = open(self.path.as_ref()).map_err(|_| Changed(self.path.clone()))?;
        let now = Self::read(self.path.clone(), &opened).map_err(|_| Changed(self.path.clone()))?;
        if self.is(&now) { Ok(opened) } else { Err(Changed(self.path.clone())) }
    }

    /// Fails if it was replaced or a link leads elsewhere.
    pub(crate) fn stays(&self) -> Result<(), Changed> {
        let now = Self::at(self.path.as_ref());
        match now {
            Ok(now) if self.is(&now) => Ok(()),
            // Unreachable for everyone.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            _ => Err(Changed(self.path.clone())),
        }
    }
}

/// Opens a path component by component without following links: some surrounding sandboxes block
/// `openat2`.
fn open(path: &Path) -> io::Result<OwnedFd> {
    below(rustix::fs::open("/", FLAGS, Mode::empty())?, path)
}

/// Opens a path below an open folder without following links.
fn below(mut here: OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    for part in path.components() {
        if let Component::Normal(name) = part {
            here = rustix::fs::openat(&here, name, FLAGS, Mode::empty())?;
        }
    }
    Ok(here)
}

/// Opens a folder for listing. Fails if the path contains a link or is no folder.
pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(open(path)?, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Fails unless a path without links is a mount point.
pub(crate) fn is_mounted(path: &Word) -> Result<(), Changed> {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    let opened = match open(path.as_ref()) {
        Ok(opened) => opened,
        // Unreachable for the worker too.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        Err(_) => return Err(Changed(path.clone())),
    };
    let stat = statx(opened, "", AtFlags::EMPTY_PATH, StatxFlags::empty()).map_err(|_| Changed(path.clone()))?;
    if stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) { Ok(()) } else { Err(Changed(path.clone())) }
}

/// A path leads to another file than before.
#[derive(Debug, thiserror::Error)]
#[error("{} was replaced while the worker was about to start", AsRef::<Path>::as_ref(.0).display())]
pub(crate) struct Changed(pub(crate) Word);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn a_path_is_opened_and_no_link_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let top = fs::canonicalize(folder.path()).expect("it is there");
        fs::create_dir_all(top.join("a/b")).expect("folders are made");
        fs::write(top.join("a/b/file"), "x").expect("a file is written");
        symlink("a", top.join("way")).expect("a link is made");
        symlink("b/file", top.join("a/end")).expect("a link is made");
        for (path, is_there) in [("a/b", true), ("a/b/file", true), ("way/b/file", false), ("a/none", false)] {
            let path = top.join(path);
            let opened = open(&path);
            assert_eq!(opened.is_ok(), is_there, "{}: {opened:?}", path.display());
            let Ok(opened) = opened else { continue };
            let (stat, meta) = (rustix::fs::fstat(opened).expect("it is looked at"), fs::metadata(&path));
            assert_eq!(stat.st_ino, meta.expect("it is there").ino());
        }
        let end = top.join("a/end");
        let opened = open(&end).expect("the link itself is opened");
        assert!(FileType::from_raw_mode(rustix::fs::fstat(opened).expect("it is looked at").st_mode).is_symlink());
        assert!(MountIdentity::at(&end).is_err() && MountIdentity::at(&top.join("a/b/file")).is_ok());
    }
}
