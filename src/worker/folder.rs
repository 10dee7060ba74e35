//! Folders that a worker could reach, held by an open handle.
//!
//! A worker may rename what we made and put a link, a pipe or another folder in its place. What is found below a handle, name
//! by name and never through a link, is where it was, whatever any path leads to by then.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, DirEntry, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::removal;

/// What the paths of what a worker left may take, in bytes, each with what it takes to keep one: they are held in memory, and cost the
/// worker little.
const MOST_PATHS: usize = 128 << 20;
pub(in crate::worker) const KEPT: usize = 32;

/// The room that there is for paths of what a worker left.
#[derive(Debug)]
pub(in crate::worker) struct Room(usize);

/// There are too many paths.
#[derive(Debug, thiserror::Error)]
#[error("it left so many files that their paths take more than {} MiB", MOST_PATHS >> 20)]
pub(in crate::worker) struct Crowded;

impl Room {
    pub(in crate::worker) fn new() -> Self {
        Self(MOST_PATHS)
    }

    /// Takes what a path of so many bytes takes.
    pub(in crate::worker) fn take(&mut self, path: usize) -> Result<(), Crowded> {
        self.0 = self.0.checked_sub(path + KEPT).ok_or(Crowded)?;
        Ok(())
    }
}

/// An open folder.
#[derive(Debug)]
pub(in crate::worker) struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder at a path, whose last part must not be a link; gives us the permissions that a worker took away.
    pub(in crate::worker) fn open(path: &Path) -> io::Result<Self> {
        removal::open_dir(CWD, path)?.map(Self).ok_or_else(|| Errno::NOENT.into())
    }

    /// Returns another handle of the same folder.
    pub(in crate::worker) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Makes a folder in this one that nobody else may enter: what a worker has in its hands, secrets among it, is nobody else's. Nothing
    /// may have its name, and this one must still be somewhere.
    pub(in crate::worker) fn make(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::RWXU)?)
    }

    /// Opens a folder below this one, `relative` being slash-separated; no part of it may be a link.
    pub(in crate::worker) fn folder(&self, relative: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = self.0.try_clone()?;
        for part in relative.split('/') {
            at = rustix::fs::openat(&at, part, flags, Mode::empty())?;
        }
        Ok(Self(at))
    }

    /// Like [`Folder::folder`] for one of ours, with the permissions that a worker may have taken away.
    pub(in crate::worker) fn own_folder(&self, name: &str) -> io::Result<Self> {
        removal::open_dir(self.0.as_fd(), name)?.map(Self).ok_or_else(|| Errno::NOENT.into())
    }

    /// Opens a plain file below this folder: no link is followed, a pipe does not block, and nothing else is opened.
    pub(in crate::worker) fn file(&self, relative: &str) -> io::Result<File> {
        let (folder, name) = match relative.rsplit_once('/') {
            Some((folder, name)) => (Some(self.folder(folder)?), name),
            None => (None, relative),
        };
        regular(folder.as_ref().unwrap_or(self).0.as_fd(), name)
    }

    /// Reads a plain file in this folder that must not have more bytes than `most`.
    pub(in crate::worker) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = self.file(name)?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, most.saturating_add(1)), &mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// Lists what is in it, with what each is, one after the other: a worker's may be more than one wants to hold.
    pub(in crate::worker) fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<(Vec<u8>, FileType)>>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?;
        let is_own = |entry: &rustix::io::Result<DirEntry>| {
            entry.as_ref().is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
        };
        Ok(entries.filter(move |entry| !is_own(entry)).map(|entry| {
            let entry = entry?;
            let kind = match entry.file_type() {
                // Some file systems do not say.
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&self.0, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            Ok((entry.file_name().to_bytes().to_owned(), kind))
        }))
    }

    /// Returns whether something of that name is in it, whatever it is.
    pub(in crate::worker) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns whether a path leads to this very folder, other than through a link at its end.
    pub(in crate::worker) fn is_at(&self, path: &Path) -> bool {
        let (Ok(here), Ok(there)) =
            (rustix::fs::fstat(&self.0), rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW))
        else {
            return false;
        };
        (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Removes `name` from this folder, with all in it; succeeds if it is not there.
    pub(in crate::worker) fn remove(&self, name: &str) -> io::Result<()> {
        removal::remove(self.0.as_fd(), name)
    }

    /// Removes all that is in it.
    pub(in crate::worker) fn empty(&self) -> io::Result<()> {
        removal::empty(self.0.as_fd())
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns whether an error says that what was opened is not there, or is a link or a file in the place of a folder.
pub(in crate::worker) fn is_no_folder(error: &io::Error) -> bool {
    let codes = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(|code| Some(code.raw_os_error()));
    codes.contains(&error.raw_os_error())
}

/// Opens a plain file that a worker may have replaced by anything: a link is not followed and a pipe does not block.
pub(in crate::worker) fn open_regular(path: &Path) -> io::Result<File> {
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
