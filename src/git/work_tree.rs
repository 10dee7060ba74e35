//! The user's own branches, index and work tree.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::half::Half;
use super::listing::{Listing, Marks};
use super::merge::Scratch;
use super::program::{self, Git};
use super::put_back::there;
use super::store::Store;
use crate::model::digest::Oid;

/// What a copy of the user's index is called.
pub(super) const COPY: &str = "index-now";

/// What becomes of files that already are what they are to become, as a command that was ended midway leaves them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Halfway {
    /// They are local changes like any other.
    Refused,
    /// They stay as they are, and the index is told of them.
    TakenUp,
}

/// Returns the ref of a branch name; none where it is no branch's.
pub fn branch_ref(store: &Store, short: &str) -> Result<Option<String>, Error> {
    match store.git().args(["check-ref-format", "--branch", short]).line() {
        // `@{-1}` is resolved to a name; `HEAD` is let through by check-ref-format and refused by `git branch`.
        Ok(name) if name != "HEAD" => Ok(Some(format!("refs/heads/{name}"))),
        Ok(_) | Err(program::Error::Failed { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Returns the work tree that has a branch checked out, if one has.
pub fn checked_out(store: &Store, name: &str) -> Result<Option<String>, Error> {
    let listed = store.git().args(["worktree", "list", "--porcelain", "-z"]).run()?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let wanted = format!("branch {name}");
    // One block a work tree, its lines ended by NUL, an empty one behind it; a bare repository has nothing checked out.
    let found = listed.split("\0\0").find(|block| block.split('\0').any(|line| line == wanted));
    let place = |block: &str| block.split('\0').find_map(|line| Some(line.strip_prefix("worktree ")?.to_owned()));
    Ok(found.filter(|block| !block.split('\0').any(|line| line == "bare")).and_then(place))
}

/// Returns the commit of `HEAD`, and the ref of its branch unless it is detached, or `None` if there is no commit yet.
pub fn head(store: &Store) -> Result<Option<(Oid, Option<String>)>, Error> {
    let failed = |error: gix::Error| Error::Head(Box::new(error));
    let repo = store.local();
    let head = repo.head().map_err(failed)?;
    let branch = head.referent_name().map(|name| name.as_bstr().to_string());
    let commit = head.try_into_peeled_id().map_err(failed)?;
    Ok(commit.map(|commit| (Oid(commit.detach()), branch)))
}

/// Returns the tracked paths whose content is not what `HEAD` has; none where there is no work tree.
pub fn uncommitted(store: &Store) -> Result<Vec<PathBuf>, Error> {
    let Some(root) = store.work_dir() else { return Ok(Vec::new()) };
    let args = ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"];
    let listed = store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0").args(args).run()?;
    let records = listed.split(|byte| *byte == 0).filter_map(|record| record.get(3..));
    Ok(records.flat_map(paths).collect())
}

/// Returns those of some paths whose content in the work tree is not what a commit has; none where there is no work tree.
pub fn changed_since(store: &Store, commit: Oid, of: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let Some(root) = store.work_dir().filter(|_| !of.is_empty()) else { return Ok(Vec::new()) };
    let args = ["--literal-pathspecs", "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z"];
    let git = store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0").args(args);
    let listed = git.arg(commit.to_string()).arg("--").args(of).run()?;
    let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    // A folder among the paths stands for all that is in it.
    Ok(names.filter(|name| of.contains(*name)).map(str::to_owned).collect())
}

/// Changes index and work tree by the difference between two trees or commits.
///
/// Refused, with nothing changed, if any path of the difference has local changes or is taken by what git does not track, ignored
/// files included; everything else stays as it is. Returns the files that were as they are to be.
pub fn switch(store: &Store, from: Oid, to: Oid, halfway: Halfway) -> Result<BTreeSet<PathBuf>, Error> {
    let root = store.work_dir().ok_or(Error::Bare)?;
    let git = || store.git().work_tree(&root);
    let half = make_way(&git, &root, (from, to), halfway)?;
    // A crash from here on leaves files that are taken up when it is done again.
    let from = half.tree().unwrap_or(from);
    match git().args(["read-tree", "-m", "-u"]).args([from.to_string(), to.to_string()]).run() {
        Ok(_) => Ok(half.into_files()),
        Err(error) => {
            half.leave(&git)?;
            Err(refusal(&git, &root, (from, to), error))
        }
    }
}

/// Fails as [`switch`] would, and changes nothing. The trees may be known to `scratch` alone.
pub fn may_switch(store: &Store, scratch: &Scratch, (from, to): (Oid, Oid), halfway: Halfway) -> Result<(), Error> {
    let root = store.work_dir().ok_or(Error::Bare)?;
    let index = copy_of_index(store, scratch.folder()).map_err(Error::Index)?;
    // A split index would be written beside the user's own.
    let git =
        || scratch.seen_by(store.git().work_tree(&root).env("GIT_INDEX_FILE", &index).config("core.splitIndex=false"));
    let from = make_way(&git, &root, (from, to), halfway)?.tree().unwrap_or(from);
    let tried = git().args(["read-tree", "-n", "-m", "-u"]).args([from.to_string(), to.to_string()]).run();
    tried.map(drop).map_err(|error| refusal(&git, &root, (from, to), error))
}

/// Finds out whether the file that git refused to write over is marked in the index, where `git stash` passes over it.
fn refusal(git: &dyn Fn() -> Git, root: &Path, (from, to): (Oid, Oid), error: program::Error) -> Error {
    let program::Error::Failed { said, .. } = &error else { return error.into() };
    let call = git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
    let marks = call.args([from.to_string(), to.to_string()]).run().and_then(|listed| {
        let named = paths(&listed).filter(|path| said.contains(&format!("'{}'", path.display())));
        Ok(Listing::read(git, root)?.marks(&named.collect::<Vec<_>>()))
    });
    match marks {
        Ok(marks) if marks != Marks::default() => Error::Marked(Box::new(marks), Box::new(error)),
        // git's own words are to be shown, whatever came of this look.
        _ => error.into(),
    }
}

/// Copies the user's index, if there is one, and keeps its time: by that, git tells entries that were written in the same moment.
pub fn copy_of_index(store: &Store, folder: &Path) -> std::io::Result<PathBuf> {
    let (from, to) = (store.git_dir().join("index"), folder.join(COPY));
    match std::fs::copy(&from, &to) {
        Ok(_) => std::fs::File::options().write(true).open(&to)?.set_modified(std::fs::metadata(&from)?.modified()?)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(to)
}

/// Fails where files that git does not track are in the way; tells the index of those that are as they are to be.
fn make_way(git: &dyn Fn() -> Git, root: &Path, (from, to): (Oid, Oid), halfway: Halfway) -> Result<Half, Error> {
    let mut taken = untracked_in_the_way(git, root, from, to)?;
    // A file that was only touched is not changed; what is changed, read-tree finds by itself.
    git().args(["update-index", "--refresh"]).succeeds()?;
    let mut half = Half::default();
    if halfway == Halfway::TakenUp {
        let changed = git().args(["diff-files", "-z", "--no-renames", "--name-only"]).run()?;
        let among = taken.iter().cloned().chain(paths(&changed)).collect();
        half = Half::take_up(git, root, (from, to), &among)?;
    }
    taken.retain(|path| !half.has(path));
    if taken.is_empty() {
        return Ok(half);
    }
    half.leave(git)?;
    Err(Error::Untracked(taken.into_iter().collect()))
}

/// Returns the files that git would write over, or take away with their folder, without a word, because they are ignored.
fn untracked_in_the_way(git: &dyn Fn() -> Git, root: &Path, from: Oid, to: Oid) -> Result<BTreeSet<PathBuf>, Error> {
    // A submodule that becomes a file is a folder as well.
    let call = git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=AT"]);
    let added = call.args([from.to_string(), to.to_string()]).run()?;
    let added: Vec<PathBuf> = paths(&added).collect();
    if added.is_empty() {
        return Ok(BTreeSet::new());
    }
    let tracked = git().args(["ls-files", "-z", "--cached"]).run()?;
    let tracked: HashSet<PathBuf> = paths(&tracked).collect();
    let is_file = |path: &Path| std::fs::symlink_metadata(root.join(path)).is_ok_and(|meta| !meta.is_dir());
    let mut taken = BTreeSet::new();
    for path in &added {
        there(root, path, &mut taken).map_err(|error| Error::Look(path.clone(), error))?;
        let folders = path.ancestors().skip(1).filter(|at| !at.as_os_str().is_empty());
        taken.extend(folders.filter(|at| is_file(at)).map(Path::to_owned));
    }
    taken.retain(|path| !tracked.contains(path));
    Ok(taken)
}

/// Reads a list of paths that git printed.
pub fn paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| {
        #[cfg(unix)]
        let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
        #[cfg(not(unix))]
        let name = std::ffi::OsString::from(String::from_utf8_lossy(name).into_owned());
        PathBuf::from(name)
    })
}

/// What can go wrong with the user's branches and files.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no work tree")]
    Bare,
    #[error("cannot read HEAD")]
    Head(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("git names a tree as {0:?}")]
    Tree(String),
    #[error("not tracked by git, and in the way: {}", .0.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
    Untracked(Vec<PathBuf>),
    #[error("a file that the index marks, so that git status does not show it, is changed here")]
    Marked(Box<Marks>, #[source] Box<program::Error>),
    #[error("{0:?} could not be looked at")]
    Look(PathBuf, #[source] std::io::Error),
    #[error("no copy of the index could be made")]
    Index(#[source] std::io::Error),
    #[error(transparent)]
    Git(#[from] program::Error),
}
