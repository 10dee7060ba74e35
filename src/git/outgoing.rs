//! What is about to be pushed, as refs that git goes through once.
//!
//! git holds each ref that it is told to push by name against every ref of both sides, so that thousands of them take minutes; by
//! a pattern it goes through them once. A pattern stands for whatever its refs point at by then, though, and only what was
//! judged is to be pushed. So the pattern is one of a folder that was made for one push, and that nobody else knows.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use tempfile::TempDir;

use super::folder;
use super::store::Store;
use crate::model::digest::Oid;

/// Where a git directory has refs that are its own: no other worktree sees them, and nothing packs them.
const FOLDER: &str = "refs/worktree";

/// What the names of the folders in it begin with.
const OURS: &str = "handoff-push-";

/// Refs in a folder of their own, gone when it is dropped; `doctor` finds it, should we be killed.
pub(super) struct Outgoing {
    folder: TempDir,
    /// How many folders there are in it, called by their numbers: git goes through refs by name.
    groups: usize,
    /// Says that somebody is at work here.
    _open: File,
}

impl Outgoing {
    /// Makes one in the git directory that git is called in; names are full ones, and none is there twice.
    ///
    /// Those of one folder go together, and the folders in the order in which they come: runs before the logs that speak of them.
    pub(super) fn new<'a>(within: &Store, refs: impl Iterator<Item = (&'a str, Oid)>) -> io::Result<Self> {
        let parent = within.git_dir().join(FOLDER);
        fs::create_dir_all(&parent)?;
        let folder = tempfile::Builder::new().prefix(OURS).rand_bytes(16).tempdir_in(&parent)?;
        let mut outgoing = Self { _open: File::open(folder.path())?, folder, groups: 0 };
        let mut last = "";
        for (name, oid) in refs {
            let split = name.strip_prefix("refs/").and_then(|below| below.rsplit_once('/'));
            let (group, segment) = split.ok_or_else(|| io::Error::other(format!("{name} is no ref")))?;
            if group != last {
                (outgoing.groups, last) = (outgoing.groups + 1, group);
            }
            let folder = outgoing.folder.path().join(outgoing.groups.to_string()).join(group);
            let path = folder.join(segment);
            let write = || fs::write(&path, format!("{oid}\n"));
            match write() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(&folder)?;
                    write()?;
                }
                other => other?,
            }
        }
        Ok(outgoing)
    }

    /// Returns the refspecs that stand for all of them, and for nothing else.
    pub(super) fn patterns(&self) -> impl Iterator<Item = String> {
        let name = self.folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        (1..=self.groups).map(move |group| format!("{FOLDER}/{name}/{group}/*:refs/*"))
    }
}

/// Returns the folders that are there now, of pushes from this work tree and from all others: those of pushes that go on, and of
/// those that were killed.
pub fn folders(store: &Store) -> Vec<PathBuf> {
    let common = store.common_dir();
    let mut places = folder::entries(&common.join("worktrees"), |_| true);
    places.push(common);
    let mut found: Vec<PathBuf> =
        places.iter().flat_map(|git| folder::entries(&git.join(FOLDER), |name| name.starts_with(OURS))).collect();
    found.sort();
    found
}
