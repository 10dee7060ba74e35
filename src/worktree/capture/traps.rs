//! Finds files of a worktree that must not reach git: pipes and devices, and huge files that git
//! reads while adding others.

use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use gix::bstr::BString;

use super::Error;
use super::walk::{below, display_path};
use crate::sandbox::folder::Room;

/// The files of a worktree that git reads while it adds others.
const READ_BY_GIT: [&[u8]; 3] = [b".gitignore", b".gitattributes", b".gitmodules"];

/// The most bytes of such files together: git holds them in memory, each line as a pattern of about
/// 80 bytes. A worker can make large ones for free, as sparse files.
const MOST: u64 = 4 << 20;

/// Files that would block or exhaust git: pipes, on which it would wait forever, and files that are
/// too large.
#[derive(Debug, Default)]
pub(crate) struct Traps {
    found: Vec<BString>,
    bytes: u64,
}

impl Traps {
    /// Checks an entry that is not a regular file.
    pub(super) fn strange(&mut self, path: &BString) {
        if is_read_by_git(path) {
            self.found.push(path.clone());
        }
    }

    /// Checks a file that the worker created or changed.
    pub(super) fn file(&mut self, path: &BString, size: u64) {
        if is_read_by_git(path) {
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > MOST {
                self.found.push(path.clone());
            }
        }
    }

    /// Adds other findings.
    pub(super) fn extend(&mut self, others: Self) {
        self.found.extend(others.found);
    }

    /// Returns the paths that git must not read.
    pub(crate) fn paths(&self) -> &[BString] {
        &self.found
    }

    /// Fails if there are any.
    pub(super) fn refuse(&self) -> Result<(), Error> {
        self.found.first().map_or(Ok(()), |path| Err(Error::refused(in_words(path))))
    }
}

/// Explains why git must not read a file.
pub(crate) fn in_words(path: &BString) -> String {
    format!(
        "git would read {}, which is no plain file, or has with others of its kind more than {} MiB",
        display_path(path),
        MOST >> 20
    )
}

/// Returns true for anything but a file, folder or link.
pub(crate) fn is_strange(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
}

/// Returns true if git reads a file of this name while it adds others.
fn is_read_by_git(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| READ_BY_GIT.contains(&name))
}

/// Returns true if git reads attributes from a file of this name.
pub(super) fn is_attributes(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes")
}

/// Returns true if a path of the worktree is a folder and no part of it is a link.
pub(crate) fn is_folder(tree: &Path, folder: &[u8]) -> bool {
    let mut path = tree.to_owned();
    folder.split(|byte| *byte == b'/').all(|part| {
        path.push(OsStr::from_bytes(part));
        fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir())
    })
}

/// Searches a folder that is not compared with the index.
pub(super) fn traps(tree: &Path, folder: BString) -> Result<Traps, Error> {
    let (mut found, mut folders, mut room) = (Traps::default(), vec![folder], Room::new());
    while let Some(current) = folders.pop() {
        // git cannot read it either.
        for entry in fs::read_dir(tree.join(OsStr::from_bytes(&current))).into_iter().flatten() {
            let entry = entry.map_err(Error::at(tree))?;
            let path = below(&current, entry.file_name().as_bytes());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    room.take(path.len())?;
                    folders.push(path);
                }
                Ok(kind) if is_strange(kind) => found.strange(&path),
                Ok(kind) if kind.is_file() => found.file(&path, entry.metadata().map_or(0, |meta| meta.len())),
                _ => {}
            }
        }
    }
    Ok(found)
}
