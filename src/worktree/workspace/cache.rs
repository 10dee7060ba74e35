//! Copies the user's caches for attempts, and hides parts of those under overlays.
//!
//! Another worker may be able to write to a cache, so links in it are not followed: each entry is
//! opened below its open folder.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, FileTimes, Permissions};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::sandbox::{HiddenInCache, Size, open_folder};

/// The most nested folders to copy; each stays open meanwhile.
const MOST_DEEP: usize = 64;

/// The permission bits, without setuid, setgid and sticky.
const RIGHTS: u32 = 0o777;

/// Copies caches for one attempt.
pub(super) struct Copying<F> {
    /// The bytes and files that may still be copied.
    left: Size,
    /// Returns true if workers must not see a path of the user's.
    hides: F,
}

/// An open folder, and its path.
#[derive(Clone, Copy)]
struct Source<'a> {
    folder: BorrowedFd<'a>,
    path: &'a Path,
    depth: usize,
}

impl<F: Fn(&Path) -> bool> Copying<F> {
    /// Creates a copier for at most these bytes and files.
    pub(super) fn new(most: Size, hides: F) -> Self {
        Self { left: most, hides }
    }

    /// Copies a cache into a new folder, sharing content if the file system can. Skips entries that
    /// disappear or cannot be read: caches tolerate missing entries. Copies nothing if the cache
    /// became a link.
    ///
    /// Returns false and leaves the new folder empty if the cache is too large.
    pub(super) fn copy(&mut self, from: &Path, to: &Path) -> io::Result<bool> {
        make_own(to)?;
        let Ok(folder) = open_folder(from) else { return Ok(true) };
        let (left, from) = (self.left, Source { folder: folder.as_fd(), path: from, depth: 0 });
        match self.entries(from, to) {
            Err(Stopped::TooMuch) => {
                self.left = left;
                fs::remove_dir_all(to)?;
                make_own(to)?;
                Ok(false)
            }
            Err(Stopped::Failed(error)) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    fn entries(&mut self, from: Source<'_>, to: &Path) -> Result<(), Stopped> {
        for name in self.names(from.folder)? {
            let path = from.path.join(&name);
            if !(self.hides)(&path) {
                self.entry(from, &name, &path, &to.join(&name))?;
            }
        }
        Ok(())
    }

    /// Lists a folder.
    fn names(&mut self, folder: BorrowedFd<'_>) -> Result<Vec<OsString>, Stopped> {
        let mut names = Vec::new();
        let Ok(entries) = Dir::read_from(folder) else { return Ok(names) };
        for entry in entries.map_while(Result::ok) {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                self.left.files = self.left.files.checked_sub(1).ok_or(Stopped::TooMuch)?;
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn entry(&mut self, from: Source<'_>, name: &OsStr, path: &Path, to: &Path) -> Result<(), Stopped> {
        let Ok(stat) = rustix::fs::statat(from.folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let Ok(folder) = open(from.folder, name, OFlags::DIRECTORY) else { return Ok(()) };
                if from.depth == MOST_DEEP {
                    return Err(Stopped::TooMuch);
                }
                make_own(to)?;
                self.entries(Source { folder: folder.as_fd(), path, depth: from.depth + 1 }, to)
            }
            FileType::Symlink => {
                let Ok(target) = rustix::fs::readlinkat(from.folder, name, Vec::new()) else { return Ok(()) };
                Ok(symlink(OsStr::from_bytes(target.as_bytes()), to)?)
            }
            // Do not wait for the other end of a pipe.
            FileType::RegularFile => match open(from.folder, name, OFlags::NONBLOCK).map(File::from) {
                Ok(file) => self.file(&file, to),
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn file(&mut self, from: &File, to: &Path) -> Result<(), Stopped> {
        let Some(meta) = from.metadata().ok().filter(fs::Metadata::is_file) else { return Ok(()) };
        if meta.len() > self.left.bytes {
            return Err(Stopped::TooMuch);
        }
        let mut made = File::create_new(to)?;
        let copied = io::copy(&mut from.take(self.left.bytes + 1), &mut made)?;
        self.left.bytes = self.left.bytes.checked_sub(copied).ok_or(Stopped::TooMuch)?;
        made.set_permissions(Permissions::from_mode(meta.permissions().mode() & RIGHTS))?;
        // Tools compare times and remove old files.
        Ok(made.set_times(FileTimes::new().set_modified(meta.modified()?))?)
    }
}

/// Why a copy is not made.
enum Stopped {
    TooMuch,
    Failed(io::Error),
}

impl<E: Into<io::Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Opens a file or folder for reading, but no link.
fn open(folder: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(folder, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags, Mode::empty())
}

/// Creates a private folder and its parents.
pub(super) fn make_own(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// Hides a path of the lower folder in an overlay with a whiteout in the upper folder.
pub(super) fn leave_out(hidden: &HiddenInCache) -> io::Result<()> {
    let (mut lower, mut upper) = (hidden.lower.clone(), hidden.upper.clone());
    let mut names = hidden.below.iter().peekable();
    while let Some(name) = names.next() {
        lower.push(name);
        upper.push(name);
        let folder = fs::symlink_metadata(&lower).ok().filter(fs::Metadata::is_dir);
        let Some(folder) = folder.filter(|_| names.peek().is_some()) else {
            let made = rustix::fs::mknodat(CWD, &upper, FileType::CharacterDevice, Mode::empty(), 0);
            return if made == Err(Errno::EXIST) { Ok(()) } else { Ok(made?) };
        };
        match DirBuilder::new().mode(folder.permissions().mode() & RIGHTS).create(&upper) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && upper.is_dir() => {}
            made => made?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a cache with a file of four bytes, a hidden file, and a link to a folder outside.
    fn cache() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let top = fs::canonicalize(folder.path()).expect("it is there");
        for (path, text) in [("cache/a/file", "four"), ("cache/a/hidden", "SECRET"), ("outside/file", "SECRET")] {
            fs::create_dir_all(top.join(path).parent().expect("a folder")).expect("folders are made");
            fs::write(top.join(path), text).expect("a file is written");
        }
        symlink("../outside", top.join("cache/link")).expect("a link is made");
        (folder, top)
    }

    #[test]
    fn a_copy_has_no_more_than_it_may_and_nothing_hidden() {
        for (bytes, files, is_whole) in [(4, 4, true), (3, 9, false), (9, 3, false)] {
            let most = Size { bytes, files };
            let (_folder, top) = cache();
            let to = top.join("copy");
            let mut copying = Copying::new(most, |path: &Path| path.ends_with("a/hidden"));
            assert_eq!(copying.copy(&top.join("cache"), &to).expect("it is copied"), is_whole, "{most:?}");
            assert_eq!(fs::read(to.join("a/file")).is_ok(), is_whole, "{most:?}");
            assert!(!to.join("a/hidden").exists() && to.is_dir(), "{most:?}");
            assert_eq!(fs::read_link(to.join("link")).is_ok(), is_whole, "{most:?}");
            // Entries that were not copied do not reduce the rest.
            assert_eq!(copying.left, if is_whole { Size { bytes: 0, files: 0 } } else { most });
        }
    }

    #[test]
    fn nothing_is_copied_through_a_link_and_no_deeper_than_folders_can_be_opened() {
        let (_folder, top) = cache();
        let mut copying = Copying::new(Size { bytes: 1 << 20, files: 1 << 10 }, |_: &Path| false);
        fs::create_dir(top.join("way")).expect("a folder is made");
        symlink("../outside", top.join("way/cache")).expect("a link is made");
        symlink(".", top.join("there")).expect("a link is made");
        for (at, from) in ["way/cache", "there/outside", "none"].iter().enumerate() {
            let to = top.join(format!("copy{at}"));
            assert!(copying.copy(&top.join(from), &to).expect("nothing fails"), "{from}");
            assert_eq!(fs::read_dir(to).expect("it is a folder").count(), 0, "{from}");
        }
        for (deep, is_whole) in [(MOST_DEEP, true), (MOST_DEEP + 1, false)] {
            let from = top.join(format!("deep{deep}"));
            fs::create_dir_all(from.join(vec!["d"; deep].join("/"))).expect("folders are made");
            assert_eq!(copying.copy(&from, &top.join(format!("to{deep}"))).expect("it is copied"), is_whole);
        }
    }

    #[test]
    fn excluded_files_of_an_overlay_become_devices() {
        use std::os::unix::fs::FileTypeExt as _;
        let (_folder, top) = cache();
        fs::create_dir(top.join("upper")).expect("a folder is made");
        for below in ["a/hidden", "a/hidden", "link/file", "none/there", "a/none"] {
            let hidden = HiddenInCache { lower: top.join("cache"), upper: top.join("upper"), below: below.into() };
            leave_out(&hidden).expect("it is left out");
        }
        assert_eq!(
            ["a", "a/hidden", "link", "none", "a/none"].map(|path| {
                let kind = fs::symlink_metadata(top.join("upper").join(path)).expect("something is there").file_type();
                kind.is_char_device()
            }),
            [false, true, true, true, true]
        );
    }
}
