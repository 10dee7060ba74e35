//! What git would open by its name, or stumble over, and where there are folders and nothing else.

use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use gix::bstr::BString;

use super::Error;
use super::walk::{below, shown};
use crate::worker::folder::Room;

/// The files of a worktree that git reads while it adds others.
const READ_BY_GIT: [&[u8]; 3] = [b".gitignore", b".gitattributes", b".gitmodules"];

/// The most bytes that such files of a worktree have together: git holds them in memory, each line as a pattern of some 80 bytes. A worker
/// has as many as it likes for nothing, in a file with holes.
const MOST: u64 = 4 << 20;

/// What git would open by its name and be held up by: a pipe, where it would wait for ever, and files that are too large.
#[derive(Debug, Default)]
pub(in crate::worker) struct Traps {
    found: Vec<BString>,
    bytes: u64,
}

impl Traps {
    /// Looks at what is no file.
    pub(super) fn strange(&mut self, path: &BString) {
        if is_read_by_git(path) {
            self.found.push(path.clone());
        }
    }

    /// Looks at a file that the worker made or changed.
    pub(super) fn file(&mut self, path: &BString, size: u64) {
        if is_read_by_git(path) {
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > MOST {
                self.found.push(path.clone());
            }
        }
    }

    /// Adds what was found elsewhere.
    pub(super) fn extend(&mut self, others: Self) {
        self.found.extend(others.found);
    }

    /// Returns what git is not to read.
    pub(in crate::worker) fn paths(&self) -> &[BString] {
        &self.found
    }

    /// Refuses to have git look at the worktree where there is any.
    pub(super) fn refuse(&self) -> Result<(), Error> {
        self.found.first().map_or(Ok(()), |path| Err(Error::refused(in_words(path))))
    }
}

/// Says why git is not to read a file.
pub(in crate::worker) fn in_words(path: &BString) -> String {
    format!(
        "git would read {}, which is no plain file, or has with others of its kind more than {} MiB",
        shown(path),
        MOST >> 20
    )
}

/// Returns whether something is neither a file nor a folder nor a link.
pub(super) fn is_strange(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
}

/// Returns whether git reads a file of that name while it adds others.
fn is_read_by_git(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| READ_BY_GIT.contains(&name))
}

/// Returns whether git looks into a file of that name for how it is to read others.
pub(super) fn is_attributes(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes")
}

/// Returns whether there is a folder at a path of the worktree, no part of which is a link.
pub(in crate::worker) fn is_folder(tree: &Path, folder: &[u8]) -> bool {
    let mut path = tree.to_owned();
    folder.split(|byte| *byte == b'/').all(|part| {
        path.push(OsStr::from_bytes(part));
        fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir())
    })
}

/// Looks below a folder that is not compared with anything for what git would be held up by.
pub(super) fn traps(tree: &Path, folder: BString) -> Result<Traps, Error> {
    let (mut found, mut folders, mut room) = (Traps::default(), vec![folder], Room::new());
    while let Some(folder) = folders.pop() {
        // What cannot be read is not read by git either.
        for entry in fs::read_dir(tree.join(OsStr::from_bytes(&folder))).into_iter().flatten() {
            let entry = entry.map_err(Error::at(tree))?;
            let path = below(&folder, entry.file_name().as_bytes());
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
