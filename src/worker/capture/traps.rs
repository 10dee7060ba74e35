//! What git would open by its name, or stumble over, and where there are folders and nothing else.

use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use gix::bstr::BString;

use super::Error;

/// The files of a worktree that git reads while it adds others.
const READ_BY_GIT: [&[u8]; 3] = [b".gitignore", b".gitattributes", b".gitmodules"];

/// Returns whether something is neither a file nor a folder nor a link.
pub(super) fn is_strange(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
}

/// Returns whether git reads a file of that name while it adds others.
pub(super) fn is_read_by_git(path: &[u8]) -> bool {
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
pub(super) fn traps(tree: &Path, folder: BString) -> Result<Vec<BString>, Error> {
    let (mut found, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        // What cannot be read is not read by git either.
        for entry in fs::read_dir(tree.join(OsStr::from_bytes(&folder))).into_iter().flatten() {
            let entry = entry.map_err(Error::at(tree))?;
            let mut path = folder.clone();
            path.push(b'/');
            path.extend_from_slice(entry.file_name().as_bytes());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(kind) if is_strange(kind) && is_read_by_git(&path) => found.push(path),
                _ => {}
            }
        }
    }
    Ok(found)
}
