//! Finds repositories that a worker created in its worktree. No patch can carry them, so they are
//! left out.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};

use gix::bstr::BString;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

use super::Error;
use super::tree::{Scratch, ignored};
use super::walk::{Walked, display_path};

/// The first bytes of a `.git` file that names the git directory of a submodule or linked worktree.
const POINTER: &[u8] = b"gitdir: ";

/// Returns true if a folder has a `.git` that is a git directory or a file that names one. Follows
/// no links.
pub(super) fn is_repository(dir: BorrowedFd<'_>) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(git) = openat(dir, c".git", flags, Mode::empty()) else { return false };
    let Ok(kind) = rustix::fs::fstat(&git).map(|stat| FileType::from_raw_mode(stat.st_mode)) else { return false };
    let has = |name: &str, kinds: &[FileType]| {
        let stat = statat(git.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| kinds.contains(&FileType::from_raw_mode(stat.st_mode)))
    };
    match kind {
        FileType::Directory => {
            let folder = [FileType::Directory];
            has("HEAD", &[FileType::RegularFile, FileType::Symlink]) && has("objects", &folder) && has("refs", &folder)
        }
        FileType::RegularFile => {
            let mut start = [0; POINTER.len()];
            std::fs::File::from(git).read_exact(&mut start).is_ok_and(|()| start == *POINTER)
        }
        _ => false,
    }
}

/// Describes a repository that was left out.
pub(crate) fn in_words(path: &BString) -> String {
    format!("{}, a git repository", display_path(path))
}

/// Returns the repositories left out of a patch, except those that git ignores.
pub(crate) fn left_out(walked: &Walked, scratch: &Scratch) -> Result<Vec<BString>, Error> {
    let ignored = ignored(scratch, &walked.repositories)?;
    let mut left_out: Vec<BString> =
        walked.repositories.iter().filter(|folder| !ignored.contains(*folder)).cloned().collect();
    left_out.sort();
    Ok(left_out)
}
