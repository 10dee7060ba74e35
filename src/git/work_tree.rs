//! Reads and changes the user's branches, index and work tree.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::checkout::{self, Checkout};
use super::listing::{Listing, Marks};
use super::merge::Scratch;
use super::partial_checkout::PartialCheckout;
use super::program::{self, Git};
use super::restore_worktree::there;
use super::store::Store;
use crate::model::digest::Oid;

/// The prefix of a branch's ref.
pub const BRANCHES: &str = "refs/heads/";

/// The file name of a copy of the user's index.
pub(super) const COPY: &str = "index-now";

/// Parts of git's messages about local changes that are in the way.
const REFUSALS: [&str; 9] = [
    "not uptodate. Cannot merge.",
    "would be overwritten by",
    "would be removed by",
    "would lose untracked files in",
    "cannot checkout new HEAD",
    "is the current working directory",
    "resolve your current index first",
    "unmerged",
    ": needs merge",
];

/// How to treat files that already have their target content, as an interrupted checkout leaves
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Halfway {
    /// As local changes.
    Refused,
    /// Keep them and add them to the index.
    TakenUp,
}

/// Returns the ref for a branch name, or `None` if the name is invalid.
pub fn branch_ref(store: &Store, short: &str) -> Result<Option<String>, Error> {
    match store.git().args(["check-ref-format", "--branch", short]).line() {
        // git resolves `@{-1}`. check-ref-format accepts `HEAD`, but `git branch` refuses it.
        Ok(name) if name != "HEAD" => Ok(Some(format!("refs/heads/{name}"))),
        Ok(_) | Err(program::Error::Failed { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// Returns the work tree in which a branch is checked out, if any.
pub fn checked_out(store: &Store, name: &str) -> Result<Option<String>, Error> {
    let listed = store.git().args(["worktree", "list", "--porcelain", "-z"]).run()?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let branch_line = format!("branch {name}");
    // Each work tree is a block of lines that end with NUL, followed by an empty one; a bare
    // repository has nothing checked out.
    let found = listed.split("\0\0").find(|block| block.split('\0').any(|line| line == branch_line));
    let found = found.filter(|block| !block.split('\0').any(|line| line == "bare"));
    Ok(found.and_then(|block| block.split('\0').find_map(|line| Some(line.strip_prefix("worktree ")?.to_owned()))))
}

/// Returns the commit of `HEAD` and the ref of its branch unless it is detached, or `None` before
/// the first commit.
pub fn head(store: &Store) -> Result<Option<(Oid, Option<String>)>, Error> {
    let repo = store.local();
    let head = repo.head().map_err(head_error)?;
    let branch = head.referent_name().map(|name| name.as_bstr().to_string());
    let commit = head.try_into_peeled_id().map_err(head_error)?;
    Ok(commit.map(|commit| (Oid(commit.detach()), branch)))
}

fn head_error(error: gix::Error) -> Error {
    Error::Head(Box::new(error))
}

/// Returns the tracked paths whose content differs from `HEAD`; none without a work tree.
pub fn uncommitted(store: &Store) -> Result<Vec<PathBuf>, Error> {
    let Some(root) = store.work_dir() else { return Ok(Vec::new()) };
    let args = ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"];
    let listed = store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0").args(args).run()?;
    let records = listed.split(|byte| *byte == 0).filter_map(|record| record.get(3..));
    Ok(records.flat_map(paths).collect())
}

/// Returns the untracked paths that git does not ignore, with one path for a folder without tracked
/// files; none without a work tree.
pub fn untracked(store: &Store) -> Result<Vec<PathBuf>, Error> {
    let Some(root) = store.work_dir() else { return Ok(Vec::new()) };
    let args = ["ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z"];
    Ok(paths(&store.git().work_tree(&root).args(args).run()?).collect())
}

/// Returns the given paths whose content in the work tree differs from a commit; none without a
/// work tree.
pub fn changed_since(store: &Store, commit: Oid, of: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let Some(root) = store.work_dir().filter(|_| !of.is_empty()) else { return Ok(Vec::new()) };
    let args = ["--literal-pathspecs", "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z"];
    let git = store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0").args(args);
    let listed = git.arg(commit.to_string()).arg("--").args(of).run()?;
    let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    // A folder matches everything in it.
    Ok(names.filter(|name| of.contains(*name)).map(str::to_owned).collect())
}

/// Applies the difference between two trees or commits to the index and work tree.
///
/// Refuses, without changes, if a path of the difference has local changes or is taken by an
/// untracked or ignored file. Leaves all other paths alone. If files cannot be written, undoes what
/// was written. Returns the files that already had their target content.
pub fn switch(store: &Store, from: Oid, to: Oid, halfway: Halfway) -> Result<BTreeSet<PathBuf>, Error> {
    let root = store.work_dir().ok_or(Error::Bare)?;
    let git = || store.git().work_tree(&root);
    let partial = make_way(&git, &root, from, to, halfway)?;
    let from = partial.tree().unwrap_or(from);
    let written = rehearse(&git, &root, from, to).and_then(|checkout| {
        // After a crash from here on, a second call finishes the rest.
        let done = git().args(["read-tree", "-m", "-u"]).args([from.to_string(), to.to_string()]).run();
        done.map_err(|error| {
            if is_refusal(&error) { refusal(&git, &root, from, to, error) } else { checkout.undo(error).into() }
        })
    });
    match written {
        Ok(_) => Ok(partial.into_files()),
        Err(error) => {
            // Without it, the index has these files already; that is no obstacle to the next call.
            let _ = partial.restore(&git);
            Err(error)
        }
    }
}

/// Fails if git would refuse the checkout, or if a folder cannot be written. Changes nothing.
fn rehearse<'a>(git: &'a dyn Fn() -> Git, root: &'a Path, from: Oid, to: Oid) -> Result<Checkout<'a>, Error> {
    let tried = git().args(["read-tree", "-n", "-m", "-u"]).args([from.to_string(), to.to_string()]).run();
    tried.map_err(|error| refusal(git, root, from, to, error))?;
    let checkout = Checkout::begin(git, root, from, to)?;
    checkout.check_folders()?;
    Ok(checkout)
}

/// Fails like [`switch`] but changes nothing. Only `scratch` needs to have the trees.
pub fn may_switch(store: &Store, scratch: &Scratch, from: Oid, to: Oid, halfway: Halfway) -> Result<(), Error> {
    let root = store.work_dir().ok_or(Error::Bare)?;
    let index = copy_of_index(store, scratch.folder()).map_err(Error::Index)?;
    // A split index would write a file beside the user's index.
    let git =
        || scratch.seen_by(store.git().work_tree(&root).env("GIT_INDEX_FILE", &index).config("core.splitIndex=false"));
    let from = make_way(&git, &root, from, to, halfway)?.tree().unwrap_or(from);
    rehearse(&git, &root, from, to).map(drop)
}

/// Returns true if local changes are the reason why git refused to change the work tree.
pub fn is_refusal(error: &program::Error) -> bool {
    let program::Error::Failed { stderr, .. } = error else { return false };
    stderr.lines().any(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)))
}

/// Checks whether the file that git refused to overwrite is marked in the index, in which case `git
/// stash` skips it.
fn refusal(git: &dyn Fn() -> Git, root: &Path, from: Oid, to: Oid, error: program::Error) -> Error {
    let stderr = match &error {
        program::Error::Failed { stderr, .. } if is_refusal(&error) => stderr,
        _ => return Error::Unready(error),
    };
    let call = git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
    let marks = call.args([from.to_string(), to.to_string()]).run().and_then(|listed| {
        let conflicting = paths(&listed).filter(|path| stderr.contains(&format!("'{}'", path.display())));
        Ok(Listing::read(git, root)?.marks(&conflicting.collect::<Vec<_>>()))
    });
    match marks {
        Ok(marks) if marks != Marks::default() => Error::Marked(Box::new(marks), Box::new(error)),
        // Show git's message, whatever this check found.
        _ => Error::Refused(error),
    }
}

/// Copies the user's index, if it exists, with its time, by which git recognises entries written in
/// the same moment.
pub fn copy_of_index(store: &Store, folder: &Path) -> std::io::Result<PathBuf> {
    let (from, to) = (store.git_dir().join("index"), folder.join(COPY));
    match std::fs::copy(&from, &to) {
        Ok(_) => std::fs::File::options().write(true).open(&to)?.set_modified(std::fs::metadata(&from)?.modified()?)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(to)
}

/// Fails if untracked files are in the way, and adds files that already have their target content
/// to the index.
fn make_way(
    git: &dyn Fn() -> Git,
    root: &Path,
    from: Oid,
    to: Oid,
    halfway: Halfway,
) -> Result<PartialCheckout, Error> {
    let mut blocked = untracked_in_the_way(git, root, from, to)?;
    // A file that was only touched is unchanged; read-tree finds changed ones itself.
    git().args(["update-index", "--refresh"]).succeeds().map_err(Error::Unready)?;
    let mut partial = PartialCheckout::default();
    if halfway == Halfway::TakenUp {
        let changed = git().args(["diff-files", "-z", "--no-renames", "--name-only"]).run()?;
        let among = blocked.iter().cloned().chain(paths(&changed)).collect();
        partial = PartialCheckout::take_up(git, root, from, to, &among)?;
    }
    blocked.retain(|path| !partial.has(path));
    if blocked.is_empty() {
        return Ok(partial);
    }
    // As above.
    let _ = partial.restore(git);
    Err(Error::Untracked(blocked.into_iter().collect()))
}

/// Returns ignored files that git would silently overwrite or remove with their folder, and files
/// and symbolic links in the place of a folder.
fn untracked_in_the_way(git: &dyn Fn() -> Git, root: &Path, from: Oid, to: Oid) -> Result<BTreeSet<PathBuf>, Error> {
    let listed = |filter| -> Result<Vec<PathBuf>, program::Error> {
        let call = git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", filter]);
        Ok(paths(&call.args([from.to_string(), to.to_string()]).run()?).collect())
    };
    // A submodule that becomes a file is also a folder.
    let (added, changed) = (listed("--diff-filter=AT")?, listed("--diff-filter=M")?);
    if added.is_empty() && changed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let tracked = git().args(["ls-files", "-z", "--cached"]).run()?;
    let tracked: HashSet<PathBuf> = paths(&tracked).collect();
    let mut untracked = BTreeSet::new();
    for path in &added {
        there(root, path, &mut untracked).map_err(|error| Error::Look(path.clone(), error))?;
    }
    for path in added.iter().chain(&changed) {
        let folders = path.ancestors().skip(1).filter(|at| !at.as_os_str().is_empty());
        untracked.extend(
            folders
                .filter(|at| std::fs::symlink_metadata(root.join(at)).is_ok_and(|meta| !meta.is_dir()))
                .map(Path::to_owned),
        );
    }
    untracked.retain(|path| !tracked.contains(path));
    Ok(untracked)
}

/// Parses a list of paths that git printed.
pub fn paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name)))
}

errors! {
    /// Why branches or files cannot be read or changed.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Bare: "there is no work tree";
    Head(#[source] Box<dyn std::error::Error + Send + Sync>): "cannot read HEAD";
    Tree(String): "git names a tree as {0:?}";
    Untracked(Vec<PathBuf>):
        "not tracked by git, and in the way: {}"
        [.0.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")];
    Marked(Box<Marks>, #[source] Box<program::Error>):
        "a file marked in the index, which git status does not show, is changed here";
    Refused(#[source] program::Error): "{0}";
    Unready(#[source] program::Error): "cannot compare the work tree; nothing was changed";
    Look(PathBuf, #[source] std::io::Error): "cannot read {0:?}";
    Index(#[source] std::io::Error): "cannot copy the index";
    #[from] Checkout(checkout::Error), Git(program::Error);
}
