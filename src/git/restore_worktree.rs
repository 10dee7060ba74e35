//! Restores the index and work tree to a state recorded earlier.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::program::{self, Git};
use super::store::Store;
use super::work_tree::paths;
use crate::model::digest::Oid;

/// The recorded entries of the index, and the files that the user had changed.
pub struct Before {
    store: Store,
    root: PathBuf,
    index: String,
    staged: BTreeSet<PathBuf>,
}

impl Before {
    /// Records the index, which matches a commit except for staged changes.
    pub fn look(store: &Store, head: Oid) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let index = store.git().work_tree(&root).arg("write-tree").line()?;
        let mut before = Self { store: store.clone(), root, index, staged: BTreeSet::new() };
        before.staged = before.differing(&head.to_string())?;
        Ok(before)
    }

    /// Returns the paths in which two trees differ.
    pub fn between(&self, from: Oid, to: Oid) -> Result<BTreeSet<PathBuf>, Error> {
        let call = self.git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
        let listed = call.args([from.to_string(), to.to_string()]).run()?;
        Ok(paths(&listed).collect())
    }

    /// Restores files that matched the index when they were changed. Later changes to them are
    /// lost.
    ///
    /// Files that the user had already staged in the new form are left alone. The index is restored
    /// first, in one step; if that fails, nothing has changed ([`Error::Nothing`]).
    pub fn put_back(&self, touched: &BTreeSet<PathBuf>) -> Result<(), Error> {
        let differing = self.differing(&self.index).map_err(Error::unchanged)?;
        let again: BTreeSet<PathBuf> =
            touched.iter().filter(|path| !self.staged.contains(*path) || differing.contains(*path)).cloned().collect();
        let tracked = self.reset_index(&again).map_err(Error::unchanged)?;
        for path in again.difference(&tracked) {
            remove(&self.root, path).map_err(|error| Error::Remove(path.clone(), error))?;
        }
        let call = self.git().args(["checkout-index", "--force", "--index", "-q", "-z", "--stdin"]);
        if !tracked.is_empty() {
            call.input(listed(&tracked)).run()?;
        }
        Ok(())
    }

    /// Restores the index, even if more was staged since, and leaves the files.
    pub fn unstage(&self) -> Result<(), Error> {
        self.reset_index(&self.differing(&self.index)?)?;
        self.git().args(["update-index", "--refresh"]).succeeds()?;
        Ok(())
    }

    /// Restores the index entries of some files and returns those that it contains.
    fn reset_index(&self, files: &BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>, Error> {
        if files.is_empty() {
            return Ok(BTreeSet::new());
        }
        // A file may replace a folder of the index: remove entries first.
        let nothing = "0".repeat(self.index.len());
        let mut input = Vec::new();
        for file in files {
            input.extend_from_slice(format!("0 {nothing}\t").as_bytes());
            input.extend_from_slice(file.as_os_str().as_encoded_bytes());
            input.push(0);
        }
        let (tracked, entries) = self.list_in_tree(&self.index, files)?;
        input.extend(entries);
        self.git().args(["update-index", "-z", "--index-info"]).input(input).run()?;
        Ok(tracked)
    }

    /// Returns which of some files a tree contains, and adds them to the index input.
    fn list_in_tree(&self, tree: &str, files: &BTreeSet<PathBuf>) -> Result<(BTreeSet<PathBuf>, Vec<u8>), Error> {
        let (mut tracked, mut input) = (BTreeSet::new(), Vec::new());
        let all = self.git().args(["ls-tree", "-r", "-z", "--full-tree", tree]).run()?;
        for entry in all.split(|byte| *byte == 0) {
            let path = entry.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default();
            if let Some(path) = paths(path).find(|path| files.contains(path)) {
                input.extend_from_slice(entry);
                input.push(0);
                tracked.insert(path);
            }
        }
        Ok((tracked, input))
    }

    /// Returns the paths in which the index differs from a tree.
    fn differing(&self, tree: &str) -> Result<BTreeSet<PathBuf>, Error> {
        let call = self.git().args(["diff-index", "--cached", "-z", "--no-renames", "--name-only", tree]);
        Ok(paths(&call.run()?).collect())
    }

    fn git(&self) -> Git {
        self.store.git().work_tree(&self.root)
    }
}

/// Joins paths with NUL, as git reads them.
pub(super) fn listed(files: &BTreeSet<PathBuf>) -> Vec<u8> {
    files.iter().flat_map(|file| [file.as_os_str().as_encoded_bytes(), b"\0"].concat()).collect()
}

/// Adds a file of the work tree if it exists, or all files of a folder in its place.
pub(super) fn there(root: &Path, path: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    match fs::symlink_metadata(root.join(path)) {
        Ok(meta) if meta.is_dir() => {
            fs::read_dir(root.join(path))?.try_for_each(|entry| there(root, &path.join(entry?.file_name()), found))
        }
        Ok(_) => {
            found.insert(path.to_owned());
            Ok(())
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes a file of the work tree and the folders that this leaves empty. Files behind a symbolic
/// link are outside of the work tree.
pub(super) fn remove(root: &Path, path: &Path) -> io::Result<()> {
    let folders = || path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let is_folder = |folder: &Path| fs::symlink_metadata(root.join(folder)).is_ok_and(|meta| meta.is_dir());
    if !folders().all(is_folder) || is_folder(path) {
        return Ok(());
    }
    match fs::remove_file(root.join(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Stops at the first folder that is not empty.
    folders().try_for_each(|folder| fs::remove_dir(root.join(folder))).unwrap_or_default();
    Ok(())
}

errors! {
    /// Why the index or work tree was not restored.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Bare: "there is no work tree";
    Remove(PathBuf, #[source] io::Error): "cannot remove {0:?}";
    Nothing(#[source] program::Error): "{0}";
    #[from] Git(program::Error);
}

impl Error {
    /// Turns a failure of git into one that changed nothing.
    fn unchanged(self) -> Self {
        if let Self::Git(inner) = self { Self::Nothing(inner) } else { self }
    }
}
