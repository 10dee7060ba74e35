//! Whether anybody else can change a file of a worktree when all that its worker started is gone.
//!
//! What a worker had open it can have passed to a process outside of its attempt, which changes the file by no path; and a file may have
//! a name elsewhere. Of the first the kernel says so: it gives a lease for writing only where nobody else has the file open, mapped, or on
//! its way from one process to another. That it tells nothing of are handles of folders, and such as are good for the path alone: by
//! neither does Landlock let anybody open a file.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Workspace;
use crate::worker::folder::Room;

/// How long is waited for whoever only looks, as an indexer does, and how often it is looked again.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Who can change a worktree's files.
#[derive(Debug)]
pub enum Held {
    /// Nobody outside of the attempt.
    Nobody,
    /// Maybe somebody: a file or folder, by its path in the worktree, and what is wrong with it.
    Somebody(PathBuf, &'static str),
    /// Nobody knows, because the file system, or this system, has no leases.
    Untold(io::Error),
}

/// A file with more names than one.
struct Named {
    path: PathBuf,
    /// How many of them were not found yet.
    missing: u64,
}

type NamedFiles = BTreeMap<(u64, u64), Named>;

/// What is done with each entry: by the folder that it lies in, its name, its path and what it is.
type Looking<'a> = dyn FnMut(BorrowedFd<'_>, &CStr, &Path, FileType) -> Result<(), Held> + 'a;

impl Workspace {
    /// Returns whether a file of the worktree can be changed by somebody outside of the attempt; the worker's git directory is not looked into.
    ///
    /// To be called when the worker's processes are gone. It looks at every file, and waits a second for those that are open.
    pub fn held(&self) -> Held {
        self.look().err().unwrap_or(Held::Nobody)
    }

    fn look(&self) -> Result<(), Held> {
        let tree = self.folder.folder("tree").map_err(|_| unread(Path::new(".")))?;
        let (mut open, mut named, mut room) = (Vec::new(), NamedFiles::new(), Room::new());
        each(tree.as_fd(), true, &mut |dir, name, path, kind| {
            if kind != FileType::RegularFile {
                return Ok(());
            }
            let file = regular(dir, name).map_err(|_| unread(path))?;
            let stat = rustix::fs::fstat(&file).map_err(|_| unread(path))?;
            let mut keep = || room.take(path.as_os_str().len()).map_err(|_| crowded(path));
            if stat.st_nlink > 1 {
                #[expect(clippy::useless_conversion, reason = "the number is narrower on other machines")]
                let all = u64::from(stat.st_nlink);
                keep()?;
                let named = named.entry(number(&stat)).or_insert(Named { path: path.to_owned(), missing: all });
                named.missing = named.missing.saturating_sub(1);
            }
            if is_open_elsewhere(&file)? {
                keep()?;
                open.push(path.to_owned());
            }
            Ok(())
        })?;
        self.find_names(&mut named);
        if let Some(named) = named.into_values().find(|named| named.missing > 0) {
            return Err(Held::Somebody(named.path, "has a name outside of the worktree as well"));
        }
        let until = Instant::now() + PATIENCE;
        while let Some(path) = open.pop() {
            let file = again(tree.as_fd(), &path).map_err(|_| unread(&path))?;
            if !is_open_elsewhere(&file)? {
                continue;
            }
            if Instant::now() > until {
                return Err(Held::Somebody(path, "is still open in a process outside of the attempt"));
            }
            open.push(path);
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Looks for further names of files in all else that the worker had for itself alone.
    fn find_names(&self, named: &mut NamedFiles) {
        let is_missing = |named: &NamedFiles| named.values().any(|named| named.missing > 0);
        let own = [self.folder.folder("tree/.git"), self.private.open()];
        for folder in own.into_iter().flatten() {
            if !is_missing(named) {
                return;
            }
            // What cannot be looked at has no names to count.
            let _ = each(folder.as_fd(), false, &mut |dir, name, _, _| {
                if let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                    && let Some(named) = named.get_mut(&number(&stat))
                {
                    named.missing = named.missing.saturating_sub(1);
                }
                Ok(())
            });
        }
    }
}

fn unread(path: &Path) -> Held {
    Held::Somebody(path.to_owned(), "cannot be read")
}

fn crowded(path: &Path) -> Held {
    Held::Somebody(path.to_owned(), "lies among more than can be looked at")
}

fn number(stat: &Stat) -> (u64, u64) {
    #[expect(clippy::useless_conversion, reason = "the number is narrower on other machines")]
    (u64::try_from(stat.st_dev).unwrap_or_default(), u64::from(stat.st_ino))
}

/// Does something with everything below a folder that is none itself.
fn each(top: BorrowedFd<'_>, is_tree: bool, look: &mut Looking<'_>) -> Result<(), Held> {
    let (mut left, mut room) = (vec![PathBuf::new()], Room::new());
    while let Some(folder) = left.pop() {
        let unread = |_| unread(&folder);
        let dir = open(top, &folder).map_err(unread)?;
        for entry in Dir::read_from(&dir).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let name = entry.file_name();
            let is_git = is_tree && folder.as_os_str().is_empty() && name == c".git";
            if is_git || matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unread)?;
                    FileType::from_raw_mode(stat.st_mode)
                }
                known => known,
            };
            if kind == FileType::Directory {
                room.take(path.as_os_str().len()).map_err(|_| crowded(&path))?;
                left.push(path);
            } else {
                look(dir.as_fd(), name, &path, kind)?;
            }
        }
    }
    Ok(())
}

/// Opens a folder below another; no part of its path may be a link.
fn open(top: BorrowedFd<'_>, folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(top, folder, flags, Mode::empty(), resolve)
    }
    #[cfg(not(target_os = "linux"))]
    rustix::fs::openat(top, folder, flags, Mode::empty())
}

/// Opens a plain file.
fn regular<P: rustix::path::Arg>(dir: BorrowedFd<'_>, name: P) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Opens one by its path below a folder.
fn again(top: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    let dir = open(top, path.parent().unwrap_or(Path::new("")))?;
    regular(dir.as_fd(), path.file_name().ok_or(Errno::NOENT)?)
}

/// Returns whether anybody else has a file open.
fn is_open_elsewhere(file: &OwnedFd) -> Result<bool, Held> {
    match lease(file) {
        Ok(()) => Ok(false),
        // Of a file of somebody else's the kernel says nothing, and it is not ours to give.
        Err(error) if [Errno::AGAIN, Errno::ACCESS].contains(&error) => Ok(true),
        Err(error) => Err(Held::Untold(error.into())),
    }
}

/// Sets the signal by which the owner of a lease is told that somebody waits, in place of one that ends processes.
#[cfg(target_os = "linux")]
const SETSIG: libc::c_int = 10;

/// Takes a lease for writing and gives it back at once.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "nothing else asks the kernel whether a file is open")]
fn lease(file: &OwnedFd) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd as _;

    let set = |command, argument: libc::c_int| {
        // SAFETY: these commands take a number, and touch no memory of ours; the file is open as long as it is borrowed.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
            _ => Ok(()),
        }
    };
    // Whoever opens it just then waits for us, and has the kernel signal us so: by a signal that nobody hears, and not by the one
    // that would end us.
    set(SETSIG, libc::SIGURG)?;
    set(libc::F_SETLEASE, libc::F_WRLCK)?;
    set(libc::F_SETLEASE, libc::F_UNLCK)
}

#[cfg(not(target_os = "linux"))]
fn lease(_: &OwnedFd) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}
