//! The entries of an index, with the skip-worktree and assume-unchanged marks, for which git does
//! not read the files.
//!
//! A marked file may still be changed or deleted: people set marks by hand, and `core.ignoreStat`
//! marks every file. Only files excluded by a sparse checkout are absent on purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gix::bstr::BStr;

use super::program::{self, Git};
use super::work_tree::paths;
use crate::model::digest::Oid;

/// One entry of an index.
struct Entry {
    /// The entry in the format of `git update-index --index-info`: mode, object, stage, a tab, the
    /// path.
    line: Vec<u8>,
    /// The entry is marked skip-worktree.
    skipped: bool,
    /// The entry is marked assume-unchanged.
    assumed: bool,
}

impl Entry {
    /// Parses a line of `git ls-files -v --stage`.
    fn parse(record: &[u8]) -> Option<Self> {
        let [tag, b' ', line @ ..] = record else { return None };
        let (skipped, assumed) = (tag.eq_ignore_ascii_case(&b'S'), tag.is_ascii_lowercase());
        Some(Self { line: line.to_vec(), skipped, assumed })
    }

    fn path(&self) -> &[u8] {
        self.line.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default()
    }
}

/// Appends an entry in the format of `git update-index -z --index-info`. The mode 0 removes the
/// path; the object name must still have the length of the repository's.
pub fn push_entry(lines: &mut Vec<u8>, path: &BStr, mode: u32, oid: Oid) {
    lines.extend_from_slice(format!("{mode:o} {oid}\t").as_bytes());
    lines.extend_from_slice(path);
    lines.push(0);
}

/// The entries of an index, and the files that a sparse checkout excludes.
pub struct Listing {
    entries: Vec<Entry>,
    left_out: BTreeSet<Vec<u8>>,
}

impl Listing {
    /// Reads the index that `git` uses for the work tree at `root`.
    pub fn read(git: &dyn Fn() -> Git, root: &Path) -> Result<Self, program::Error> {
        let listed = git().args(["ls-files", "-z", "-v", "--stage"]).run()?;
        let entries: Vec<Entry> = listed.split(|byte| *byte == 0).filter_map(Entry::parse).collect();
        let skipped = entries.iter().filter(|entry| entry.skipped).map(Entry::path);
        let left_out = left_out(git, root, skipped)?;
        Ok(Self { entries, left_out })
    }

    /// Returns every entry in the format of `git update-index -z --index-info`.
    pub fn lines(&self) -> Vec<u8> {
        joined(self.entries.iter())
    }

    /// Returns the marked entries in the same format, except files that a sparse checkout excludes.
    ///
    /// An index filled with these entries has neither marks nor times for them, so git reads each
    /// file.
    pub fn marked_lines(&self) -> Vec<u8> {
        let marked = self.entries.iter().filter(|entry| entry.skipped || entry.assumed);
        joined(marked.filter(|entry| !self.left_out.contains(entry.path())))
    }

    /// Returns the files that a sparse checkout excludes.
    pub fn left_out(&self) -> &BTreeSet<Vec<u8>> {
        &self.left_out
    }

    /// Returns which of some paths are marked.
    pub fn marks(&self, among: &[PathBuf]) -> Marks {
        let among: BTreeSet<&[u8]> = among.iter().map(|path| path.as_os_str().as_encoded_bytes()).collect();
        let marked = |has: fn(&Entry) -> bool| {
            let entries = self.entries.iter().filter(|entry| has(entry) && among.contains(entry.path()));
            entries.flat_map(|entry| paths(entry.path())).collect()
        };
        Marks { skipped: marked(|entry| entry.skipped), assumed: marked(|entry| entry.assumed) }
    }
}

/// Marked files by kind of mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Files that are marked skip-worktree.
    pub skipped: Vec<PathBuf>,
    /// Files that are marked assume-unchanged.
    pub assumed: Vec<PathBuf>,
}

fn joined<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<u8> {
    entries.flat_map(|entry| entry.line.iter().copied().chain([0])).collect()
}

/// Returns the skip-worktree files that are absent because a sparse checkout excludes them.
///
/// git before 2.41 cannot test paths against the patterns; there every absent file counts as
/// excluded.
fn left_out<'e>(
    git: &dyn Fn() -> Git,
    root: &Path,
    skipped: impl Iterator<Item = &'e [u8]>,
) -> Result<BTreeSet<Vec<u8>>, program::Error> {
    let mut folders = BTreeMap::new();
    let mut absent: BTreeSet<Vec<u8>> =
        skipped.filter(|path| !is_present(root, path, &mut folders)).map(<[u8]>::to_vec).collect();
    if absent.is_empty() || !is_sparse(git)? {
        return Ok(BTreeSet::new());
    }
    let place = git().args(["rev-parse", "--git-path", "info/sparse-checkout"]).line()?;
    if !program::checks_sparse_rules() || !root.join(place).exists() {
        return Ok(absent);
    }
    let input = absent.iter().flat_map(|path| path.iter().copied().chain([0])).collect::<Vec<u8>>();
    let matched = git().args(["sparse-checkout", "check-rules", "-z"]).input(input).run()?;
    for path in matched.split(|byte| *byte == 0) {
        absent.remove(path);
    }
    Ok(absent)
}

fn is_sparse(git: &dyn Fn() -> Git) -> Result<bool, program::Error> {
    match git().args(["config", "--type=bool", "--get", "core.sparseCheckout"]).line() {
        Ok(value) => Ok(value == "true"),
        Err(program::Error::Failed { code: Some(1), .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Returns true if the file exists in the work tree. A file behind a symbolic link is outside of
/// it.
fn is_present(root: &Path, path: &[u8], folders: &mut BTreeMap<PathBuf, bool>) -> bool {
    let Some(path) = paths(path).next() else { return false };
    let mut is_folder = |folder: &Path| {
        if let Some(known) = folders.get(folder) {
            return *known;
        }
        let found = fs::symlink_metadata(root.join(folder)).is_ok_and(|meta| meta.is_dir());
        folders.insert(folder.to_owned(), found);
        found
    };
    let above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    above.collect::<Vec<_>>().into_iter().rev().all(&mut is_folder) && fs::symlink_metadata(root.join(&path)).is_ok()
}
