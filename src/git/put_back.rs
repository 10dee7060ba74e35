//! Puts index and work tree back as they were before files were changed in them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::program::{self, Git};
use super::store::Store;
use super::work_tree::paths;
use crate::model::digest::Oid;

/// What stood in the index, and in which of its files the person had changes.
pub struct Before {
    store: Store,
    root: PathBuf,
    index: String,
    staged: BTreeSet<PathBuf>,
}

impl Before {
    /// Looks at the index, which holds all of a commit but for what the person has staged.
    pub fn look(store: &Store, head: Oid) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let index = store.git().work_tree(&root).arg("write-tree").line()?;
        let mut before = Self { store: store.clone(), root, index, staged: BTreeSet::new() };
        before.staged = before.differing(&head.to_string())?;
        Ok(before)
    }

    /// Returns what there is to put back, where the index held a commit and nothing else.
    pub fn at(store: &Store, head: Oid) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        Ok(Self { store: store.clone(), root, index: head.to_string(), staged: BTreeSet::new() })
    }

    /// Returns whether the person has anything staged.
    pub fn is_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Returns the paths in which two trees differ.
    pub fn between(&self, from: Oid, to: Oid) -> Result<BTreeSet<PathBuf>, Error> {
        let call = self.git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
        let listed = call.args([from.to_string(), to.to_string()]).run()?;
        Ok(paths(&listed).collect())
    }

    /// Puts files back that were as they are in the index when they were changed; whatever was done to them since is lost.
    ///
    /// What the person had staged before in just the form that it would be given was not touched, and is not.
    pub fn put_back(&self, touched: &BTreeSet<PathBuf>) -> Result<(), Error> {
        let differing = self.differing(&self.index)?;
        let again = touched.iter().filter(|path| !self.staged.contains(*path) || differing.contains(*path));
        let listed = self.git().args(["ls-files", "-z", "--cached"]).run()?;
        let mut known: BTreeSet<PathBuf> = paths(&listed).collect();
        let listed = self.git().args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", &self.index]).run()?;
        known.extend(paths(&listed));
        let (restored, gone): (Vec<&PathBuf>, Vec<&PathBuf>) = again.partition(|path| known.contains(*path));
        for path in gone {
            match fs::remove_file(self.root.join(path)) {
                Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    return Err(Error::Remove(path.clone(), error));
                }
                _ => {}
            }
        }
        self.restore(&["--staged", "--worktree"], &restored)
    }

    /// Puts the index back whatever was staged since, and leaves the files.
    pub fn unstage(&self) -> Result<(), Error> {
        let differing = self.differing(&self.index)?;
        self.restore(&["--staged"], &differing.iter().collect::<Vec<_>>())
    }

    fn restore(&self, what: &[&str], files: &[&PathBuf]) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let mut listed = Vec::new();
        for file in files {
            listed.extend_from_slice(file.as_os_str().as_encoded_bytes());
            listed.push(0);
        }
        let call = self.git().env("GIT_LITERAL_PATHSPECS", "1").arg("restore").arg(format!("--source={}", self.index));
        let call = call.args(what).args(["--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"]);
        call.input(listed).run()?;
        Ok(())
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

/// Why index and work tree are not as they were.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no work tree.
    #[error("there is no work tree")]
    Bare,
    /// A file could not be removed.
    #[error("{0:?} could not be removed")]
    Remove(PathBuf, #[source] io::Error),
    /// git failed.
    #[error(transparent)]
    Git(#[from] program::Error),
}
