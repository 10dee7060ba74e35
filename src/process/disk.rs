//! Measures the disk usage of folders and the free space of file systems.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

/// The most nested folders to open; deeper ones are not counted.
const DEEPEST: usize = 128;

/// The free space to keep: at most these bytes, and at most this fraction of the file system.
const FLOOR: (u64, u64) = (512 << 20, 50);

/// Returns a folder's disk usage in bytes, at least `least` for each file. Does not follow links or
/// count unreadable folders.
///
/// Walks by handles: a worker may replace a folder with a link at any time.
pub fn size(folder: &Path, least: u64) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut total = 0;
    let mut above: Vec<(OwnedFd, Vec<CString>)> = Vec::new();
    let top = rustix::fs::openat(CWD, folder, flags, Mode::empty());
    above.extend(top.ok().map(|top| count(top, least, &mut total)));
    while let Some((dir, left)) = above.last_mut() {
        let Some(name) = left.pop() else {
            above.pop();
            continue;
        };
        let inner = rustix::fs::openat(&*dir, &name, flags | OFlags::NOFOLLOW, Mode::empty());
        if let Ok(inner) = inner
            && above.len() < DEEPEST
        {
            above.push(count(inner, least, &mut total));
        }
    }
    total
}

/// Adds the entries of a folder to `total`. Returns the folder and the names of its subfolders.
fn count(dir: OwnedFd, least: u64, total: &mut u64) -> (OwnedFd, Vec<CString>) {
    let mut folders = Vec::new();
    for entry in Dir::read_from(&dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let Some(stat) = stat.ok().filter(|_| !matches!(name.to_bytes(), b"." | b"..")) else { continue };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        #[cfg_attr(
            target_arch = "x86_64",
            expect(clippy::useless_conversion, reason = "the number is narrower on other machines")
        )]
        let names = if is_folder { 1 } else { u64::from(stat.st_nlink).max(1) };
        // A file with several links counts in part for each, so that no inodes need to be
        // remembered.
        *total += (stat.st_blocks.unsigned_abs() * 512).max(least) / names;
        if is_folder {
            folders.push(name.to_owned());
        }
    }
    (dir, folders)
}

/// Returns the free bytes of a folder's file system and the bytes that must stay free, or `None` if
/// unknown.
pub(super) fn free(folder: &Path) -> Option<(u64, u64)> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    let (most, part) = FLOOR;
    let [free, all] = [stat.f_bavail, stat.f_blocks].map(|blocks| blocks.saturating_mul(stat.f_frsize));
    Some((free, most.min(all / part)))
}
