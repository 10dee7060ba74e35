//! Files of another user in the git directory. A container, `sudo` or a job that runs as root
//! leaves them there, and the owner of the repository can no longer write.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::git::store::Store;
use crate::model::hints;

use super::Finding;

/// The folders of the git directory to search, besides its top level.
const FOLDERS: [&str; 6] = ["handoff", "logs", "objects", "refs", "worktrees", "info"];

/// The maximum number of files and folders to inspect.
const MOST_FILES: usize = 20_000;

/// The maximum number of files to report.
const MOST_FOUND: usize = 1_000;

/// Finds them for the current user; for root, finds root's files in a repository of another user.
pub(super) fn examine(store: &Store) -> Option<Finding> {
    let dir = store.common_dir();
    let user = rustix::process::geteuid().as_raw();
    let top = dir.symlink_metadata().ok()?;
    let owner = if user == 0 { top.uid() } else { user };
    let found = in_the_way(&dir, owner, top.gid());
    let (first, others) = found.split_first()?;
    let (path, uid) = (first.0.display(), first.1);
    let them = match others.len() {
        0 => format!("{path} belongs"),
        1 => format!("{path} and 1 other file or folder there belong"),
        more => format!("{path} and {more} other files and folders there belong"),
    };
    if user == 0 {
        let message = format!("{them} to uid {uid}; the repository belongs to uid {owner}, who cannot use that");
        return Some(Finding::problem("foreign-files", message).hint(hints::give_back_files(owner, dir.display())));
    }
    let message = format!("{them} to another user (uid {uid})");
    Some(Finding::problem("foreign-files", message).hint(hints::take_over_files(dir.display())))
}

/// Returns the files and folders that `owner` cannot use, each with its user.
fn in_the_way(dir: &Path, owner: u32, group: u32) -> Vec<(PathBuf, u32)> {
    let mut left: Vec<PathBuf> = sorted_entries(dir);
    left.reverse();
    let mut found = Vec::new();
    let mut looked = 0;
    while let Some(path) = left.pop().filter(|_| looked < MOST_FILES && found.len() < MOST_FOUND) {
        looked += 1;
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.uid() != owner && !is_shared(&meta, group) {
            found.push((path.clone(), meta.uid()));
        }
        let is_top = path.parent() == Some(dir);
        let is_searched = !is_top || FOLDERS.iter().any(|name| path.file_name().is_some_and(|own| own == *name));
        if meta.is_dir() && is_searched {
            left.extend(sorted_entries(&path));
        }
    }
    found
}

fn sorted_entries(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns true if the file is shared, as `core.sharedRepository` requires: a folder must be
/// writable, a file readable.
///
/// Objects and refs are replaced, never written to.
fn is_shared(meta: &Metadata, group: u32) -> bool {
    let (of_group, of_all) = if meta.is_dir() { (0o030, 0o003) } else { (0o040, 0o004) };
    let mode = meta.mode();
    meta.is_symlink() || mode & of_all == of_all || (mode & of_group == of_group && meta.gid() == group)
}
