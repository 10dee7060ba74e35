//! Removes a folder that a worker could change.
//!
//! The worker may have removed permissions, planted links to other places, or nested folders deeper
//! than any path, stack or number of open files permits. So removal works relative to open folders,
//! follows nothing, and first moves deep folders up.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Folders below this depth are moved up before they are emptied.
const DEPTH: usize = 32;

/// Removes `name` from an open folder with everything in it. Succeeds if it does not exist. Removes
/// a link but not its target.
pub(crate) fn remove<P: rustix::path::Arg + Copy>(at: BorrowedFd<'_>, name: P) -> io::Result<()> {
    match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // The two errors for a folder.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(dir) = open_dir(at, name)? else {
        return Ok(());
    };
    empty(dir.as_fd())?;
    match rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

/// Removes everything in an open folder.
pub(crate) fn empty(dir: BorrowedFd<'_>) -> io::Result<()> {
    let mut moved = 0;
    loop {
        let before = moved;
        clear(dir, dir, 0, &mut moved)?;
        if before == moved {
            return Ok(());
        }
    }
}

fn clear(root: BorrowedFd<'_>, dir: BorrowedFd<'_>, depth: usize, moved: &mut u64) -> io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entry.file_type() != FileType::Directory {
            match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                // A folder of unknown type, or one without write permission.
                Err(Errno::ISDIR | Errno::PERM | Errno::ACCESS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if depth >= DEPTH {
            move_up(root, dir, name, moved)?;
            continue;
        }
        if let Some(inner) = open_dir(dir, name)? {
            clear(root, inner.as_fd(), depth + 1, moved)?;
        }
        match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Moves a folder to the top under an unused name, and counts it.
fn move_up(root: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &std::ffi::CStr, moved: &mut u64) -> io::Result<()> {
    // Moving a folder changes its `..`, for which it must be writable.
    open_dir(dir, name)?;
    loop {
        *moved += 1;
        match rustix::fs::renameat(dir, name, root, format!(".deep.{moved}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            other => return Ok(other?),
        }
    }
}

/// Opens a folder to empty it and grants ourselves permission. Returns `None` if it does not exist.
pub(crate) fn open_dir<P: rustix::path::Arg + Copy>(at: impl AsFd + Copy, name: P) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::ACCESS) => {
            grant(at, name)?;
            rustix::fs::openat(at, name, flags, Mode::empty())?
        }
        Err(error) => return Err(error.into()),
    };
    if rustix::fs::fstat(&fd)?.st_mode & 0o700 != 0o700 {
        rustix::fs::fchmod(&fd, Mode::RWXU)?;
    }
    Ok(Some(fd))
}

/// Makes a folder readable without following a link in its place.
fn grant<P: rustix::path::Arg>(at: impl AsFd, name: P) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(at, name, flags, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        Ok(rustix::fs::chmodat(CWD, path, Mode::RWXU, AtFlags::empty())?)
    }
    #[cfg(not(target_os = "linux"))]
    Ok(rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)?)
}
