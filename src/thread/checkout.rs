//! Restores a saved working tree without overwriting local changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::git::checkout::{self, Checkout};
use crate::git::listing::Marks;
use crate::git::program::{self, Git};
use crate::git::quarantine::Quarantine;
use crate::git::store::Store;
use crate::git::work_tree;
use crate::model::digest::Oid;
use crate::model::entry::Content;

use super::path_of;
use super::submodules::{self, Behind};
use super::worktree::{self, Snapshot, records};

/// The changes to make, computed before anything is changed.
pub struct Plan<'q> {
    snapshot: Snapshot<'q>,
    tree: Oid,
    writes: Vec<Vec<u8>>,
    removals: Vec<Vec<u8>>,
}

impl<'q> Plan<'q> {
    /// Compares the saved working tree, in the quarantine or the repository, with the current one.
    ///
    /// `HEAD` must be the commit it was saved on. Locally changed files are kept if the saved tree
    /// does not change or contain them; otherwise everything is refused.
    pub fn new(store: &Store, quarantine: &'q Quarantine, content: &Content) -> Result<Self, Error> {
        let saved = content.worktree.as_ref().ok_or(Error::NoWorktree)?;
        let head = work_tree::head(store)?.map(|(commit, _)| commit);
        if head != content.base {
            return Err(Error::OtherBase { base: content.base, head });
        }
        let snapshot = Snapshot::take(store, quarantine, None)?;
        let mut plan = Self { snapshot, tree: saved.tree, writes: Vec::new(), removals: Vec::new() };
        let conflicts = plan.sort_out(store, head)?;
        if conflicts.is_empty() {
            plan.begin(&|| plan.snapshot.git())?.check_folders()?;
            return Ok(plan);
        }
        let marks = plan.snapshot.listing.marks(&conflicts);
        Err(Error::LocalChanges { paths: conflicts, marks })
    }

    /// Sorts differing paths into those to write, to remove and in conflict.
    fn sort_out(&mut self, store: &Store, head: Option<Oid>) -> Result<Vec<PathBuf>, Error> {
        let local = local_changes(store, &self.snapshot)?;
        let differing = |old: String| -> Result<BTreeMap<Vec<u8>, u8>, program::Error> {
            let call = self.snapshot.git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-status"]);
            let listed = call.args([old, self.tree.to_string()]).run()?;
            let mut fields = records(&listed);
            let mut paths = BTreeMap::new();
            while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
                paths.insert(path.to_vec(), status[0]);
            }
            Ok(paths)
        };
        let committed = head.map_or_else(|| store.empty_tree().to_string(), |head| format!("{head}^{{tree}}"));
        let saved_changes: BTreeSet<Vec<u8>> = differing(committed)?.into_keys().collect();
        let differences = differing(self.snapshot.tree.to_string())?;
        let mut conflicts = Vec::new();
        for (path, status) in &differences {
            match (status, local.get(path)) {
                (b'D', Some(Local::New)) => {}
                (b'D', None) => self.removals.push(path.clone()),
                (b'D', Some(Local::Changed)) => conflicts.push(path_of(path)),
                (_, Some(_)) if !saved_changes.contains(path) => {}
                (_, Some(_)) => conflicts.push(path_of(path)),
                (_, None) => self.writes.push(path.clone()),
            }
        }
        let removals: BTreeSet<PathBuf> = self.removals.iter().map(|path| path_of(path)).collect();
        for path in &self.writes {
            let path = path_of(path);
            let added = differences.get(path.as_os_str().as_encoded_bytes()) == Some(&b'A');
            let mut folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
            let is_blocked = folders.any(|folder| {
                let here = fs::symlink_metadata(self.snapshot.root().join(folder));
                let is_no_folder = here.is_ok_and(|meta| !meta.is_dir()) && !removals.contains(folder);
                is_no_folder || self.snapshot.nested.iter().any(|nested| path_of(nested) == folder)
            });
            // Ignored files are in no tree, but belong to the user.
            let occupied = added && self.is_taken(&path, &removals);
            if occupied || is_blocked {
                conflicts.push(path);
            }
        }
        Ok(conflicts)
    }

    fn is_taken(&self, path: &Path, removals: &BTreeSet<PathBuf>) -> bool {
        match fs::symlink_metadata(self.snapshot.root().join(path)) {
            Ok(meta) if meta.is_dir() => !only_holds(self.snapshot.root(), path, removals),
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Makes the changes; returns submodules that could not be checked out. After an error, the
    /// files are as they were.
    pub fn apply(&self) -> Result<Vec<Behind>, Error> {
        let git = || self.snapshot.git().env("GIT_INDEX_FILE", self.snapshot.place("index-before"));
        git().args(["read-tree", &self.snapshot.tree.to_string()]).run()?;
        let checkout = self.begin(&git)?;
        self.write().map_err(|error| checkout.undo(error).into())
    }

    /// Reads the state of the files to change.
    fn begin<'a>(&'a self, git: &'a dyn Fn() -> Git) -> Result<Checkout<'a>, Error> {
        let paths = self.writes.iter().chain(&self.removals).map(|path| path_of(path)).collect();
        Ok(Checkout::begin(git, self.snapshot.root(), self.snapshot.tree, self.tree)?.only(&paths))
    }

    fn write(&self) -> Result<Vec<Behind>, Error> {
        let root = self.snapshot.root();
        for path in &self.removals {
            let path = path_of(path);
            let at = root.join(&path);
            match fs::remove_file(&at) {
                // Omitted by a sparse checkout.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::Io(at, error)),
                Ok(()) => {}
            }
            for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
                // Stops at the first folder with other content.
                if fs::remove_dir(root.join(folder)).is_err() {
                    break;
                }
            }
        }
        if self.writes.is_empty() {
            return Ok(Vec::new());
        }
        let index = |git: Git| git.env("GIT_INDEX_FILE", self.snapshot.place("checkout-index"));
        index(self.snapshot.git()).args(["read-tree", &self.tree.to_string()]).run()?;
        let call = index(self.snapshot.git()).args(["checkout-index", "-f", "-z", "--stdin"]);
        call.input(self.writes.join(&0)).run()?;
        let listed = index(self.snapshot.git()).args(["ls-files", "-z", "--stage"]).run()?;
        Ok(submodules::check_out(root, submodules::links(&listed, &self.writes)))
    }
}

/// Returns true if a folder contains only files to remove.
fn only_holds(root: &Path, folder: &Path, removals: &BTreeSet<PathBuf>) -> bool {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return false };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            let path = folder.join(entry.file_name());
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            removals.contains(&path) || (is_dir && only_holds(root, &path, removals))
        })
    })
}

/// A local change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Local {
    /// A file that is not in the commit.
    New,
    /// A file that differs from the commit.
    Changed,
}

/// Returns the paths that differ from the commit, in the index or on the disk, regardless of flags
/// in the index.
fn local_changes(store: &Store, snapshot: &Snapshot) -> Result<BTreeMap<Vec<u8>, Local>, Error> {
    let index = work_tree::copy_of_index(store, snapshot.folder()).map_err(work_tree::Error::Index)?;
    let git = || {
        // A split index would be written beside the user's own.
        let settings = ["core.splitIndex=false", "core.ignoreStat=false", "core.checkStat=default"];
        let git = settings.into_iter().fold(store.git().work_tree(snapshot.root()), Git::config);
        git.config("core.untrackedCache=false").env("GIT_INDEX_FILE", &index)
    };
    let marked = snapshot.listing.marked_lines();
    if !marked.is_empty() {
        git().args(["update-index", "-z", "--index-info"]).input(marked).run()?;
    }
    let listed = git().args(["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]).run()?;
    let changes = records(&listed).filter(|record| record.len() > 3).map(|record| {
        // Untracked, added, or intended to be added (`git add --intent-to-add`).
        let is_new = matches!(record[..2], [b'?' | b'A', _] | [_, b'A']);
        (record[3..].to_vec(), if is_new { Local::New } else { Local::Changed })
    });
    Ok(changes.collect())
}

errors! {
    /// An error while restoring a working tree.
    #[derive(Debug, thiserror::Error)] pub enum Error = "checkout";
    NoWorktree "no-worktree": "the checkpoint holds no working tree";
    OtherBase { base: Option<Oid>, head: Option<Oid> }:
        "the working tree was saved on {}, and HEAD is at {}" [describe_commit(*.base), describe_commit(*.head)];
    LocalChanges { paths: Vec<PathBuf>, marks: Marks } "local-changes":
        "changed here, and in the way: {}"
        [paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")];
    Io(PathBuf, #[source] io::Error): "cannot remove {}" [.0.display()];
    #[from "checkout"] Snapshot(worktree::Error), Head(work_tree::Error), Write(checkout::Error), Git(program::Error);
}

fn describe_commit(commit: Option<Oid>) -> String {
    commit.map_or_else(|| "no commit".to_owned(), |commit| commit.to_string())
}
