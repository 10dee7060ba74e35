//! Records the initial state of our folders, to detect later changes.
//!
//! A file is unchanged if all fields of [`FileStatus`] are: content, mode, owner, flags, extended
//! attributes and hard links cannot change without the change time, which no program can set. The
//! few calls that replace blocks without changing times (`EXT4_IOC_MOVE_EXT` and its like) are
//! refused to workers; where they are not, times are not trusted
//! ([`Workspace::distrust_times`](super::Workspace::distrust_times)). A folder's change time
//! likewise shows created and removed entries. This requires that later changes have later times,
//! so [`Recorded::newest`] is compared with the file system's clock, and a file system that
//! [`is_kept`] knows.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, IFlags, Mode, OFlags, StatxFlags};

/// The status of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStatus {
    /// Device, mount and inode.
    place: [u64; 3],
    mode: u32,
    owner: (u32, u32),
    /// Flags such as immutable and append-only, and whether it is a mount point.
    attributes: u64,
    links: u32,
    size: u64,
    modified: (i64, u32),
    pub(super) changed: (i64, u32),
}

impl FileStatus {
    /// Returns true if this is the same folder, whatever its entries.
    pub(crate) fn is_same_folder(&self, other: &Self) -> bool {
        (self.place, self.mode, self.owner, self.attributes) == (other.place, other.mode, other.owner, other.attributes)
    }

    /// Returns true if a folder has the same entries as before.
    pub(crate) fn has_same_entries(&self, other: &Self) -> bool {
        (self.size, self.modified, self.changed) == (other.size, other.modified, other.changed)
    }

    /// Returns true for a folder.
    pub(crate) fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::Directory
    }

    /// Returns true if a folder grew so large that a new one would be faster to read.
    pub(super) fn is_bloated(&self, before: &Self) -> bool {
        const MOST: u64 = 1 << 20;
        self.size > before.size.max(MOST)
    }
}

/// The record of an entry of a folder.
#[derive(Debug)]
pub(crate) enum Node {
    /// Anything but a folder, or `None` while it is to be written again.
    File(Option<FileStatus>),
    /// A folder.
    Folder(Recorded),
}

/// The record of a folder with everything in it.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) status: FileStatus,
    pub(crate) nodes: BTreeMap<CString, Node>,
    /// True if it or anything below must be read again.
    pub(super) stale: bool,
}

impl Recorded {
    /// Reads a folder and all below it.
    pub(super) fn read(dir: BorrowedFd<'_>) -> io::Result<Self> {
        let mut nodes = BTreeMap::new();
        for name in names(dir)? {
            let name = name?;
            let status = read_status(dir, &name)?;
            let node = if status.is_folder() {
                Node::Folder(Self::read(open(dir, &name)?.as_fd())?)
            } else {
                Node::File(Some(status))
            };
            nodes.insert(name, node);
        }
        Ok(Self { status: look_at(dir)?, nodes, stale: false })
    }

    /// Reads stale records again.
    pub(super) fn refresh(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        for (name, node) in &mut self.nodes {
            match node {
                Node::File(status @ None) => *status = Some(read_status(dir, name)?),
                Node::Folder(folder) if folder.stale => folder.refresh(open(dir, name)?.as_fd())?,
                Node::File(Some(_)) | Node::Folder(_) => {}
            }
        }
        self.status = look_at(dir)?;
        self.stale = false;
        Ok(())
    }

    /// Returns the latest change time of anything in it.
    pub(super) fn newest(&self) -> (i64, u32) {
        let below = self.nodes.values().map(|node| match node {
            Node::File(status) => status.map_or((0, 0), |status| status.changed),
            Node::Folder(folder) => folder.newest(),
        });
        below.fold(self.status.changed, Ord::max)
    }
}

/// Iterates over the names in a folder, which may be too many for memory.
pub(crate) fn names(dir: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = io::Result<CString>> + use<>> {
    let names = Dir::read_from(dir)?.map(|entry| Ok(entry?.file_name().to_owned()));
    Ok(names.filter(|name| !matches!(name, Ok(name) if matches!(name.to_bytes(), b"." | b".."))))
}

/// Opens a subfolder without following a link.
pub(crate) fn open(dir: BorrowedFd<'_>, name: &CString) -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Reads the status of an open folder.
pub(crate) fn look_at(dir: BorrowedFd<'_>) -> io::Result<FileStatus> {
    read_status(dir, c"")
}

/// The file systems on which every change of a file, even through a mapping, changes its change
/// time.
///
/// Not `tmpfs`, where writes to a page that was read through a mapping leave the time; others
/// are unknown.
const KEPT: [u32; 4] = [EXT, XFS, BTRFS, F2FS];
const EXT: u32 = 0xef53;
const XFS: u32 = 0x5846_5342;
const BTRFS: u32 = 0x9123_683e;
const F2FS: u32 = 0xf2f5_2010;

/// Returns true if the change time shows every change on this folder's file system.
pub(super) fn is_kept(dir: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstatfs(dir).ok().and_then(|stat| u32::try_from(stat.f_type).ok());
    kind.is_some_and(|kind| KEPT.contains(&kind))
}

/// Reads the status of an entry without following a link.
pub(crate) fn read_status(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<FileStatus> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let stat = rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    let device = u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor);
    Ok(FileStatus {
        place: [device, stat.stx_mnt_id, stat.stx_ino],
        mode: stat.stx_mode.into(),
        owner: (stat.stx_uid, stat.stx_gid),
        attributes: stat.stx_attributes.bits(),
        links: stat.stx_nlink,
        size: stat.stx_size,
        modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
    })
}

/// Returns the flags and extended attributes of a folder, access lists included, that a program
/// can set.
pub(super) fn attributes(dir: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    // Flags that the file system sets itself, for storage.
    const ITS_OWN: u32 = 0x1000 | 0x8_0000 | 0x1000_0000;
    let flags = rustix::fs::ioctl_getflags(dir).unwrap_or(IFlags::empty()).bits() & !ITS_OWN;
    let mut all = flags.to_le_bytes().to_vec();
    let mut names = vec![0; 4 << 10];
    let length = match rustix::fs::flistxattr(dir, &mut *names) {
        Err(rustix::io::Errno::OPNOTSUPP) => 0,
        other => other?,
    };
    for name in names[..length].split_inclusive(|byte| *byte == 0) {
        let mut value = vec![0; 64 << 10];
        let name = CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
        let read_length = rustix::fs::fgetxattr(dir, name, &mut *value)?;
        all.extend_from_slice(name.to_bytes_with_nul());
        all.extend_from_slice(&(read_length as u64).to_le_bytes());
        all.extend_from_slice(&value[..read_length]);
    }
    Ok(all)
}
