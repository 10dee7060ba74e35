//! Folders that a worker could change, held by open handles.
//!
//! A worker may rename our folders and put links, pipes or other folders in their place. Access
//! below a handle, name by name and never through a link, is safe from that.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, DirEntry, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::sandbox::removal;

/// The most memory for the paths of a worker's files, in bytes, overhead included: paths cost the
/// worker little.
const MOST_PATHS: usize = 128 << 20;
pub(crate) const KEPT: usize = 32;

/// The remaining memory for paths of a worker's files.
#[derive(Debug)]
pub(crate) struct Room(usize);

/// There are too many paths.
#[derive(Debug, thiserror::Error)]
#[error("the paths of its files exceed {} MiB", MOST_PATHS >> 20)]
pub(crate) struct Crowded;

impl Room {
    pub(crate) fn new() -> Self {
        Self(MOST_PATHS)
    }

    /// Subtracts the memory for a path of this length.
    pub(crate) fn take(&mut self, path: usize) -> Result<(), Crowded> {
        self.0 = self.0.checked_sub(path + KEPT).ok_or(Crowded)?;
        Ok(())
    }
}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder at a path, of which the last component must not be a link. Restores our
    /// permissions if the worker removed them.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        removal::open_dir(CWD, path)?.map(Self).ok_or_else(|| Errno::NOENT.into())
    }

    /// Returns another handle of the same folder.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Creates a private folder in this one: a worker's files may contain secrets. The name must be
    /// unused, and this folder must still exist.
    pub(crate) fn make(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::RWXU)?)
    }

    /// Opens a folder below this one by a slash-separated path, no part of which may be a link.
    pub(crate) fn folder(&self, relative: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = self.0.try_clone()?;
        for part in relative.split('/') {
            at = rustix::fs::openat(&at, part, flags, Mode::empty())?;
        }
        Ok(Self(at))
    }

    /// Like [`Folder::folder`] for one of our folders; restores permissions that a worker removed.
    pub(crate) fn own_folder(&self, name: &str) -> io::Result<Self> {
        removal::open_dir(self.0.as_fd(), name)?.map(Self).ok_or_else(|| Errno::NOENT.into())
    }

    /// Opens a regular file below this folder. Follows no link and does not block on a pipe.
    pub(crate) fn file(&self, relative: &str) -> io::Result<File> {
        let (folder, name) = match relative.rsplit_once('/') {
            Some((folder, name)) => (Some(self.folder(folder)?), name),
            None => (None, relative),
        };
        regular(folder.as_ref().unwrap_or(self).0.as_fd(), name)
    }

    /// Reads a regular file of at most `most` bytes in this folder.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = self.file(name)?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, most.saturating_add(1)), &mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// Iterates over its entries and their types. A worker's folder may be too large to collect.
    pub(crate) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<(Vec<u8>, FileType)>>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?;
        Ok(entries.filter(move |entry| !is_dot_entry(entry)).map(|entry| {
            let entry = entry?;
            let kind = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            Ok((entry.file_name().to_bytes().to_owned(), kind))
        }))
    }

    /// Returns true if it has an entry of any type with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns true if a path leads to this folder, except through a link at its end.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let (Ok(here), Ok(there)) =
            (rustix::fs::fstat(&self.0), rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW))
        else {
            return false;
        };
        (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Removes `name` from this folder with everything in it. Succeeds if it does not exist.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        removal::remove(self.0.as_fd(), name)
    }

    /// Removes everything in it.
    pub(crate) fn empty(&self) -> io::Result<()> {
        removal::empty(self.0.as_fd())
    }
}

/// Returns true for the folder itself and for its parent.
fn is_dot_entry(entry: &rustix::io::Result<DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns true if an error means that the entry is missing or is not a folder.
pub(crate) fn is_no_folder(error: &io::Error) -> bool {
    let codes = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(|code| Some(code.raw_os_error()));
    codes.contains(&error.raw_os_error())
}

/// Opens a regular file that a worker may have replaced. Follows no link and does not block on a
/// pipe.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    regular(CWD, path)
}

fn regular<P: rustix::path::Arg>(at: BorrowedFd<'_>, name: P) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(at, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"))
}
