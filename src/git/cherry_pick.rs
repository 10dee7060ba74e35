//! `git cherry-pick` in the user's work tree: reads its state, runs it and aborts it.
//!
//! All state between two commands is git's own: `CHERRY_PICK_HEAD` and the folder `sequencer`. So
//! the user can also continue, skip or abort with `git cherry-pick`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::checkout::{self, Checkout};
use super::hook::Hooks;
use super::merge;
use super::program::{self, Git};
use super::restore_worktree::there;
use super::store::Store;
use super::temporary::Temporary;
use super::work_tree::{self, paths};
use crate::model::digest::Oid;

/// The file in the git directory of a work tree that names the commit being picked.
const PICKED: &str = "CHERRY_PICK_HEAD";

/// The file that holds the message of the commit to be made.
const MESSAGE: &str = "MERGE_MSG";

/// A cherry-pick in progress.
#[derive(Clone, Debug)]
pub struct CherryPick {
    /// The commit that stopped it, or the next one.
    pub commit: Oid,
    /// Its message.
    pub message: String,
    /// True if the commit's changes are in the index and work tree, ready to be committed or
    /// skipped.
    pub is_shown: bool,
    /// The commits of `HEAD` at the start and after the last command. `None` if one commit is
    /// picked: then `HEAD` has not moved.
    moved: Option<(Oid, Oid)>,
}

impl CherryPick {
    /// Reads the cherry-pick in progress in this work tree, or returns `None`.
    pub fn read(store: &Store) -> Result<Option<Self>, Error> {
        let folder = store.git_dir().join("sequencer");
        let picked = read(&store.git_dir().join(PICKED))?;
        let todo = read(&folder.join("todo"))?;
        let next = todo.as_deref().and_then(|todo| todo.lines().next()?.strip_prefix("pick ")?.split(' ').next());
        let Some(name) = picked.as_deref().or(next) else { return Ok(None) };
        let output = store.git().args(["log", "-1", "--format=%H%n%B", &format!("{name}^{{commit}}")]).line()?;
        let (commit, message) = output.split_once('\n').unwrap_or((&output, ""));
        let (commit, message) = (oid(commit)?, message.to_owned());
        let moved = match (read(&folder.join("head"))?, read(&folder.join("abort-safety"))?) {
            (Some(start), Some(left)) => Some((oid(&start)?, oid(&left)?)),
            _ => None,
        };
        Ok(Some(Self { commit, message, is_shown: picked.is_some(), moved }))
    }

    /// Returns true if `HEAD` is where the last command left it.
    pub fn is_at(&self, head: Oid) -> bool {
        self.moved.is_none_or(|(_, left)| left == head)
    }

    /// Returns the files that the user changed since and that aborting would overwrite, except
    /// conflicting ones.
    pub fn changed_by_hand(&self, store: &Store, head: Oid) -> Result<BTreeSet<PathBuf>, Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let (tree, open) = self.read_index(store)?;
        let start = self.start(head).to_string();
        let differing = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", &start, &tree.to_string()];
        let own: BTreeSet<PathBuf> = paths(&store.git().args(differing).run()?).collect();
        let own: BTreeSet<PathBuf> = own.difference(&open).cloned().collect();
        // Compares contents, regardless of marks in the user's index.
        let folder = Temporary::new().map_err(Error::Index)?;
        let index = work_tree::copy_of_index(store, folder.path()).map_err(Error::Index)?;
        let git = || store.git().work_tree(&root).env("GIT_INDEX_FILE", &index).config("core.splitIndex=false");
        git().args(["read-tree", "--reset", &tree.to_string()]).run()?;
        git().args(["update-index", "--refresh"]).succeeds()?;
        let indexed: BTreeSet<PathBuf> = paths(&git().args(["ls-files", "-z"]).run()?).collect();
        let unstaged = git().args(["diff-files", "-z", "--no-renames", "--name-only"]).run()?;
        let differing_paths: BTreeSet<PathBuf> = paths(&unstaged).collect();
        let mut found = BTreeSet::new();
        for path in own.iter().filter(|path| differing_paths.contains(*path) || !indexed.contains(*path)) {
            there(&root, path, &mut found).map_err(|error| Error::Look(path.clone(), error))?;
        }
        found.retain(|path| differing_paths.contains(path) || !indexed.contains(path));
        Ok(found)
    }

    /// Restores branch, index and files to their state at the start. Keeps the user's other changes
    /// in the files.
    pub fn give_up(&self, store: &Store, reason: &str) -> Result<(), Error> {
        let root = store.work_dir().ok_or(Error::Bare)?;
        let git = || store.git().work_tree(&root);
        let (tree, open) = self.read_index(store)?;
        let tree = tree.to_string();
        let staged = git().args(["diff-index", "--cached", "-z", "--no-renames", "--name-only", &tree]).run()?;
        let staged: Vec<PathBuf> = paths(&staged).filter(|path| !open.contains(path)).collect();
        // git discards staged changes; the user's staged changes of other files must stay in the
        // files.
        if !staged.is_empty() {
            let unstage =
                ["--literal-pathspecs", "reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul", &tree];
            git().args(unstage).input(listed(&staged)).run()?;
        }
        // git refuses if a file was staged and then changed again; conflicting files are discarded
        // in any case.
        let open: Vec<PathBuf> = open
            .into_iter()
            .filter(|path| !fs::symlink_metadata(root.join(path)).is_ok_and(|meta| meta.is_dir()))
            .collect();
        if !open.is_empty() {
            let add = ["update-index", "--add", "--remove", "-z", "--stdin"];
            git().args(add).input(listed(&open)).run()?;
        }
        git().env("GIT_REFLOG_ACTION", reason).args(["cherry-pick", "--abort"]).run()?;
        Ok(())
    }

    /// Returns the commit of `HEAD` at the start.
    fn start(&self, head: Oid) -> Oid {
        self.moved.map_or(head, |(start, _)| start)
    }

    /// Returns the tree that git left in the index, and the paths that it could not merge.
    fn read_index(&self, store: &Store) -> Result<(Oid, BTreeSet<PathBuf>), Error> {
        if !self.is_shown {
            return Ok((oid(&store.git().args(["rev-parse", "HEAD^{tree}"]).line()?)?, BTreeSet::new()));
        }
        let commit = self.commit.to_string();
        let call = store.git().args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
        let (tree, open) = merge::answer(call.args([&format!("--merge-base={commit}^"), "HEAD", &commit]))?;
        Ok((tree, open.unwrap_or_default()))
    }
}

/// Runs `git cherry-pick` with the user's hooks, or without any. Opens no editor.
pub fn run(store: &Store, hooks: Option<&Hooks>, arguments: &[String]) -> Result<(), Error> {
    let root = store.work_dir().ok_or(Error::Bare)?;
    let git = hooks.map_or_else(|| store.git().work_tree(&root), Hooks::git_with_hooks);
    Ok(git.env("GIT_EDITOR", ":").arg("cherry-pick").args(arguments).run().map(drop)?)
}

/// Undoes what git wrote into files before it failed to pick a commit without a conflict.
pub fn undo(store: &Store, commit: Oid, cause: program::Error) -> Result<checkout::Error, Error> {
    let root = store.work_dir().ok_or(Error::Bare)?;
    let git = || store.git().work_tree(&root);
    let call = store.git().args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
    let (tree, open) = merge::answer(call.args([&format!("--merge-base={commit}^"), "HEAD", &commit.to_string()]))?;
    let head = oid(&store.git().args(["rev-parse", "HEAD^{tree}"]).line()?)?;
    let checkout = Checkout::failed(&git, &root, (head, tree), open.unwrap_or_default())?;
    Ok(checkout.undo(cause))
}

/// Ends a cherry-pick without touching branch, index or files.
pub fn forget(store: &Store) -> Result<(), Error> {
    Ok(git(store)?.args(["cherry-pick", "--quit"]).run().map(drop)?)
}

/// Returns the message prepared for the commit.
pub fn message(store: &Store) -> Result<String, Error> {
    Ok(read(&store.git_dir().join(MESSAGE))?.unwrap_or_default())
}

/// Replaces the message prepared for the commit.
pub fn set_message(store: &Store, message: &str) -> Result<(), Error> {
    let path = store.git_dir().join(MESSAGE);
    fs::write(&path, message).map_err(|error| Error::File(path, error))
}

/// Returns the paths that are unmerged in the index.
pub fn unmerged(store: &Store) -> Result<BTreeSet<PathBuf>, Error> {
    let listed = git(store)?.args(["ls-files", "--unmerged", "-z"]).run()?;
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
    Ok(entries.flat_map(paths).collect())
}

/// Returns true if the index differs from `HEAD`.
pub fn is_staged(store: &Store) -> Result<bool, Error> {
    Ok(!git(store)?.args(["diff-index", "--cached", "--quiet", "HEAD"]).succeeds()?)
}

fn git(store: &Store) -> Result<Git, Error> {
    Ok(store.git().work_tree(&store.work_dir().ok_or(Error::Bare)?))
}

/// Reads a file, or returns `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::File(path.to_owned(), error)),
    }
}

/// Joins paths with NUL, as git reads them.
fn listed(files: &[PathBuf]) -> Vec<u8> {
    files.iter().flat_map(|file| [file.as_os_str().as_encoded_bytes(), b"\0"].concat()).collect()
}

fn oid(text: &str) -> Result<Oid, Error> {
    Ok(merge::oid(text)?)
}

errors! {
    /// Why a cherry-pick cannot be read or completed.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Bare: "there is no work tree";
    File(PathBuf, #[source] io::Error): "cannot read or write {}" [.0.display()];
    Look(PathBuf, #[source] io::Error): "cannot read {}" [.0.display()];
    Index(#[source] io::Error): "cannot copy the index";
    #[from] Merge(merge::Error), Git(program::Error);
}
