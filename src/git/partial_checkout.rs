//! Finishes a checkout that was interrupted after it wrote files but before it updated the index.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::program::{self, Git};
use super::temporary::Temporary;
use super::work_tree::{Error, paths};
use crate::model::digest::Oid;

/// The modes that git lists for an absent entry and for a submodule.
const NOTHING: &str = "000000";
const SUBMODULE: &str = "160000";

/// A path in which two trees differ, with both entries in the index's input format.
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) old: Option<Vec<u8>>,
    pub(super) new: Option<Vec<u8>>,
    /// The name of the new object.
    pub(super) object: String,
    /// The input that removes the entry.
    removal: Vec<u8>,
}

/// Files that already match the target tree and were added to the index; empty if that was not
/// checked.
#[derive(Default)]
pub(super) struct PartialCheckout {
    files: BTreeSet<PathBuf>,
    changes: Vec<Change>,
    /// The original tree with these files.
    tree: Option<Oid>,
}

impl PartialCheckout {
    /// Adds files that match the target tree to the index, where the index still has the entry of
    /// the original tree.
    pub(super) fn take_up(
        git: &dyn Fn() -> Git,
        root: &Path,
        from: Oid,
        to: Oid,
        among: &BTreeSet<PathBuf>,
    ) -> Result<Self, Error> {
        let mut changes = changes(git, from, to)?;
        if !changes.iter().any(|change| among.contains(&change.path)) {
            return Ok(Self::default());
        }
        let staged = git().args(["diff-index", "--cached", "-z", "--no-renames", "--name-only", &from.to_string()]);
        let staged: BTreeSet<PathBuf> = paths(&staged.run()?).collect();
        // The index would drop staged files below such a file or in place of its folder.
        changes.retain(|change| {
            !staged.iter().any(|other| other.starts_with(&change.path) || change.path.starts_with(other))
        });
        let candidates = changes.iter().filter(|change| {
            among.contains(&change.path)
                && fs::symlink_metadata(root.join(&change.path)).is_ok_and(|meta| !meta.is_dir())
        });
        let entries: Vec<u8> =
            candidates.clone().filter_map(|change| change.new.as_deref()).flatten().copied().collect();
        let differing = differing(git, &entries)?;
        let same: Vec<&Change> =
            candidates.filter(|change| change.new.is_some() && !differing.contains(&change.path)).collect();
        let same_entries = same.iter().filter_map(|change| change.new.as_deref()).collect::<Vec<_>>().concat();
        let files: BTreeSet<PathBuf> = same.into_iter().map(|change| change.path.clone()).collect();
        let tree = if files.is_empty() { None } else { Some(replace_entries(git, from, &same_entries)?) };
        write_entries(git, &same_entries)?;
        git().args(["update-index", "--refresh"]).succeeds()?;
        Ok(Self { files, changes, tree })
    }

    /// Returns the tree that the index now contains in place of the original one.
    pub(super) fn tree(&self) -> Option<Oid> {
        self.tree
    }

    /// Returns true if the file is one of them.
    pub(super) fn has(&self, file: &Path) -> bool {
        self.files.contains(file)
    }

    /// Returns these files.
    pub(super) fn into_files(self) -> BTreeSet<PathBuf> {
        self.files
    }

    /// Restores the original entries of the index.
    pub(super) fn restore(&self, git: &dyn Fn() -> Git) -> Result<(), program::Error> {
        if self.files.is_empty() {
            return Ok(());
        }
        // A file may replace a folder of the index: remove entries first.
        let removals = self.changes.iter().flat_map(|change| change.removal.iter());
        let old = self.changes.iter().filter_map(|change| change.old.as_deref()).flatten();
        write_entries(git, &removals.chain(old).copied().collect::<Vec<_>>())?;
        git().args(["update-index", "--refresh"]).succeeds().map(drop)
    }
}

/// Returns the differences between two trees, without submodules.
pub(super) fn changes(git: &dyn Fn() -> Git, from: Oid, to: Oid) -> Result<Vec<Change>, program::Error> {
    let listed =
        git().args(["diff-tree", "-r", "-z", "--no-renames"]).args([from.to_string(), to.to_string()]).run()?;
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).filter(|field| !field.is_empty()).collect();
    let changes = fields.chunks_exact(2).filter_map(|pair| {
        // `:<mode> <mode> <object> <object> <letter>`, and the path.
        let record = String::from_utf8_lossy(pair[0].strip_prefix(b":")?).into_owned();
        let words: Vec<&str> = record.split(' ').collect();
        let [old_mode, mode, old_object, object, _] = words[..] else { return None };
        if [old_mode, mode].contains(&SUBMODULE) {
            return None;
        }
        let entry = |bits: &str, id: &str| (bits != NOTHING).then(|| entry(bits, id, pair[1]));
        let (old, new) = (entry(old_mode, old_object), entry(mode, object));
        let removal = self::entry(NOTHING, &"0".repeat(object.len()), pair[1]);
        Some(Change { path: paths(pair[1]).next()?, old, new, object: object.to_owned(), removal })
    });
    Ok(changes.collect())
}

/// Returns the entries whose file in the work tree differs or is missing.
fn differing(git: &dyn Fn() -> Git, entries: &[u8]) -> Result<BTreeSet<PathBuf>, Error> {
    with_temporary_index(git, |git| {
        write_entries(git, entries)?;
        git().args(["update-index", "--refresh"]).succeeds()?;
        let listed = git().args(["diff-files", "-z", "--no-renames", "--name-only"]).run()?;
        Ok(paths(&listed).collect())
    })
}

/// Returns the tree with the given entries replaced.
fn replace_entries(git: &dyn Fn() -> Git, tree: Oid, entries: &[u8]) -> Result<Oid, Error> {
    with_temporary_index(git, |git| {
        git().args(["read-tree", &tree.to_string()]).run()?;
        write_entries(git, entries)?;
        let written = git().arg("write-tree").line()?;
        written.parse().map_err(|_| Error::Tree(written))
    })
}

/// Runs a function with an empty temporary index.
fn with_temporary_index<T>(
    git: &dyn Fn() -> Git,
    does: impl Fn(&dyn Fn() -> Git) -> Result<T, Error>,
) -> Result<T, Error> {
    let folder = Temporary::new().map_err(Error::Index)?;
    // A split index would write a file beside the user's index.
    does(&|| git().env("GIT_INDEX_FILE", folder.path().join("index")).config("core.splitIndex=false"))
}

/// Writes entries into the index.
fn write_entries(git: &dyn Fn() -> Git, entries: &[u8]) -> Result<(), program::Error> {
    if entries.is_empty() {
        return Ok(());
    }
    git().args(["update-index", "-z", "--index-info"]).input(entries).run().map(drop)
}

/// Formats an entry for `git update-index --index-info`.
fn entry(mode: &str, object: &str, path: &[u8]) -> Vec<u8> {
    [mode.as_bytes(), b" ", object.as_bytes(), b"\t", path, b"\0"].concat()
}
