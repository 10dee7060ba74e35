//! A worktree by open handles: no link is followed at any component of a path.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::{BStr, BString, ByteSlice as _};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::sandbox::removal;

/// The most nested folders.
const DEEPEST: usize = 1000;

/// An open folder with paths below it.
pub(in crate::worktree) struct Tree(OwnedFd);

/// The type and mode of an entry.
pub(in crate::worktree) struct Found {
    pub(in crate::worktree) kind: FileType,
    /// The permission bits.
    pub(in crate::worktree) mode: u32,
    pub(in crate::worktree) size: u64,
    /// The number of hard links.
    pub(super) links: u64,
}

impl Tree {
    /// Opens a folder below another by its name.
    pub(in crate::worktree) fn open(at: BorrowedFd<'_>, name: &str) -> io::Result<Self> {
        removal::open_dir(at, name)?.map(Self).ok_or_else(|| Errno::NOENT.into())
    }

    /// Opens a folder by its path.
    pub(in crate::worktree) fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Returns the folder itself.
    pub(in crate::worktree) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Opens the folder at a path, or returns `None` if a component is missing or not a folder.
    fn folder(&self, path: &BStr) -> io::Result<Option<OwnedFd>> {
        let mut here = self.0.try_clone()?;
        for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            match removal::open_dir(here.as_fd(), OsStr::from_bytes(part)) {
                Ok(Some(next)) => here = next,
                Ok(None) => return Ok(None),
                Err(error) if is_no_folder(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(here))
    }

    /// Returns the folder of a path, which must exist, and the last component.
    fn parent<'p>(&self, path: &'p BStr) -> io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path);
        Ok((self.folder(parent)?.ok_or(io::ErrorKind::NotFound)?, name))
    }

    /// Returns the entry at a path, or `None` if there is none or a component is not a folder.
    pub(in crate::worktree) fn find(&self, path: &BStr) -> io::Result<Option<Found>> {
        let (parent, name) = split(path);
        let Some(parent) = self.folder(parent)? else { return Ok(None) };
        match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Found {
                kind: FileType::from_raw_mode(stat.st_mode),
                mode: stat.st_mode & 0o7777,
                size: u64::try_from(stat.st_size).unwrap_or_default(),
                links: stat.st_nlink,
            })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if a folder is at the path.
    pub(in crate::worktree) fn is_folder(&self, path: &BStr) -> io::Result<bool> {
        Ok(self.folder(path)?.is_some())
    }

    /// Removes the entry at a path, a folder with everything in it. Succeeds if there is none.
    pub(in crate::worktree) fn remove(&self, path: &BStr) -> io::Result<()> {
        let (parent, name) = split(path);
        match self.folder(parent)? {
            Some(parent) => removal::remove(parent.as_fd(), name),
            None => Ok(()),
        }
    }

    /// Removes the folder at a path if it is empty.
    pub(super) fn remove_empty(&self, path: &BStr) {
        let (parent, name) = split(path);
        if let Ok(Some(parent)) = self.folder(parent) {
            let _ = rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
        }
    }

    /// Moves the entry at a path to a path in another tree, whose parent must exist.
    pub(in crate::worktree) fn rename(&self, path: &BStr, to: &Self, new: &BStr) -> io::Result<()> {
        let ((parent, name), (new_parent, new_name)) = (self.parent(path)?, to.parent(new)?);
        Ok(rustix::fs::renameat(&parent, name, &new_parent, new_name)?)
    }

    /// Creates the folder at a path, whose parent must exist.
    pub(in crate::worktree) fn make(&self, path: &BStr) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777))?)
    }

    /// Opens the regular file at a path for reading.
    pub(in crate::worktree) fn read(&self, path: &BStr) -> io::Result<std::fs::File> {
        self.open_file(path, OFlags::RDONLY | OFlags::NONBLOCK, 0)
    }

    /// Creates a file at a path where nothing exists.
    pub(in crate::worktree) fn create(&self, path: &BStr, mode: u32) -> io::Result<std::fs::File> {
        self.open_file(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)
    }

    fn open_file(&self, path: &BStr, flags: OFlags, mode: u32) -> io::Result<std::fs::File> {
        let (parent, name) = self.parent(path)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Returns the target of the link at a path.
    pub(in crate::worktree) fn link(&self, path: &BStr) -> io::Result<Vec<u8>> {
        let (parent, name) = self.parent(path)?;
        Ok(rustix::fs::readlinkat(&parent, name, Vec::new())?.into_bytes())
    }

    /// Creates a link at a path.
    pub(in crate::worktree) fn make_link(&self, path: &BStr, target: &OsStr) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(rustix::fs::symlinkat(target, &parent, name)?)
    }

    /// Calls `visit` with the path and type of each entry except folders with entries. Skips what
    /// `skips` says.
    pub(super) fn walk(
        &self,
        skips: &dyn Fn(&BStr) -> bool,
        visit: &mut dyn FnMut(BString, FileType) -> io::Result<()>,
    ) -> io::Result<()> {
        walk(self.0.as_fd(), &BString::default(), 0, skips, visit)
    }
}

fn walk(
    dir: BorrowedFd<'_>,
    folder: &BString,
    depth: usize,
    skips: &dyn Fn(&BStr) -> bool,
    visit: &mut dyn FnMut(BString, FileType) -> io::Result<()>,
) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::other(format!("more than {DEEPEST} nested folders")));
    }
    let (mut folders, mut is_empty) = (Vec::new(), true);
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        is_empty = false;
        let mut path = folder.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        if skips(path.as_ref()) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            kind => kind,
        };
        if kind == FileType::Directory { folders.push(path) } else { visit(path, kind)? }
    }
    if is_empty && !folder.is_empty() {
        visit(folder.clone(), FileType::Directory)?;
    }
    for path in folders {
        let (_, name) = split(path.as_ref());
        if let Some(next) = removal::open_dir(dir, name)? {
            walk(next.as_fd(), &path, depth + 1, skips, visit)?;
        }
    }
    Ok(())
}

/// Splits a path into its parent and its last component.
fn split(path: &BStr) -> (&BStr, &OsStr) {
    match path.rfind_byte(b'/') {
        Some(at) => (path[..at].as_bstr(), OsStr::from_bytes(&path[at + 1..])),
        None => (b"".as_bstr(), OsStr::from_bytes(path)),
    }
}

fn is_no_folder(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}
