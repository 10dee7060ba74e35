//! Temporary refs for a push, which git matches with one pattern.
//!
//! git compares each ref named in a push with every ref of both sides, so thousands take minutes; a
//! pattern is matched once. But a pattern pushes whatever its refs point at by then. So the pattern
//! names a private folder of refs made for one push.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::folder;
use super::store::{Durability, Store};
use crate::model::digest::Oid;

/// Refs private to a git directory: no other worktree sees them, and nothing packs them.
const FOLDER: &str = "refs/worktree";

/// The prefix of our folders.
const OURS: &str = "handoff-push-";

/// The suffix of a folder that is being filled. git takes nothing in it for a ref.
const UNFINISHED: &str = ".lock";

/// The most files to flush one by one, and not with everything else of their file system.
const FEW: usize = 8;

/// Refs in a folder of their own, deleted when dropped. `doctor` finds it if this process is
/// killed.
///
/// The refs are flushed before git can see them: after a power cut, an empty one would be a broken
/// ref, which stops `git gc` and every fetch.
pub(super) struct Outgoing {
    folder: PathBuf,
    /// The number of subfolders, named by number: git visits refs in order of name.
    groups: usize,
    /// An open file that shows that a process uses the folder.
    _open: File,
}

impl Outgoing {
    /// Creates one in the git directory in which git runs. Names are full and distinct.
    ///
    /// Refs of one folder are pushed together, and folders in the given order: runs before the logs
    /// that refer to them.
    pub(super) fn new<'a>(within: &Store, refs: impl Iterator<Item = (&'a str, Oid)>) -> io::Result<Self> {
        let parent = within.git_dir().join(FOLDER);
        fs::create_dir_all(&parent)?;
        let building = tempfile::Builder::new().prefix(OURS).suffix(UNFINISHED).rand_bytes(16).tempdir_in(&parent)?;
        let open = File::open(building.path())?;
        let (groups, files) = write(building.path(), refs)?;
        if within.durability() == Durability::Strict {
            if files.len() <= FEW {
                files.iter().try_for_each(|path| File::open(path)?.sync_data())?;
            } else {
                within.sync().map_err(io::Error::other)?;
            }
        }
        let folder = building.path().with_extension("");
        fs::rename(building.path(), &folder)?;
        let _ = building.keep();
        Ok(Self { folder, groups, _open: open })
    }

    /// Returns the refspecs that match exactly these refs.
    pub(super) fn patterns(&self) -> impl Iterator<Item = String> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (1..=self.groups).map(move |group| format!("{FOLDER}/{name}/{group}/*:refs/*"))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // `doctor` finds one that cannot be removed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Writes the refs below a folder. Returns the number of subfolders, and the files.
fn write<'a>(top: &Path, refs: impl Iterator<Item = (&'a str, Oid)>) -> io::Result<(usize, Vec<PathBuf>)> {
    let (mut groups, mut files, mut last) = (0, Vec::new(), "");
    for (name, oid) in refs {
        let split = name.strip_prefix("refs/").and_then(|below| below.rsplit_once('/'));
        let (group, segment) = split.ok_or_else(|| io::Error::other(format!("{name} is no ref")))?;
        if group != last {
            (groups, last) = (groups + 1, group);
        }
        let folder = top.join(groups.to_string()).join(group);
        let path = folder.join(segment);
        let write = || fs::write(&path, format!("{oid}\n"));
        match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&folder)?;
                write()?;
            }
            other => other?,
        }
        files.push(path);
    }
    Ok((groups, files))
}

/// Returns the existing folders of all worktrees, of running and of killed pushes.
pub fn folders(store: &Store) -> Vec<PathBuf> {
    let common = store.common_dir();
    let mut places = folder::entries(&common.join("worktrees"), |_| true);
    places.push(common);
    let mut found: Vec<PathBuf> =
        places.iter().flat_map(|git| folder::entries(&git.join(FOLDER), |name| name.starts_with(OURS))).collect();
    found.sort();
    found
}
