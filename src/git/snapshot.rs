//! Reads the user's work tree as it is: what differs from a commit, and the whole as a commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::merge::bare_commit;
use super::program;
use super::store::{self, Store};
use super::work_tree::{self, copy_of_index, paths};
use crate::model::digest::Oid;

/// Returns the paths that differ from a commit: tracked files, in the index or not, and untracked
/// ones that git does not ignore. Submodules, and everything below the `beside` folders, are left
/// out.
pub fn changed(store: &Store, commit: Oid, beside: &[&str]) -> Result<BTreeSet<PathBuf>, Error> {
    let root = store.work_dir().ok_or(work_tree::Error::Bare)?;
    let git = || store.git().work_tree(&root).env("GIT_OPTIONAL_LOCKS", "0");
    let options = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];
    let tracked = git().args(options).arg(commit.to_string()).arg("--").run()?;
    let untracked = git().args(["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
    let mut changed: BTreeSet<PathBuf> = paths(&tracked).chain(paths(&untracked)).collect();
    changed.retain(|path| !beside.iter().any(|folder| path.starts_with(folder)));
    Ok(changed)
}

/// Writes a commit of the work tree on top of `HEAD`, without the `beside` folders. Neither the
/// index nor a ref changes.
pub fn commit(store: &Store, beside: &[&str]) -> Result<Oid, Error> {
    let root = store.work_dir().ok_or(work_tree::Error::Bare)?;
    let (head, _) = work_tree::head(store)?.ok_or(Error::Unborn)?;
    let folder = tempfile::tempdir().map_err(Error::Folder)?;
    let index = copy_of_index(store, folder.path()).map_err(Error::Folder)?;
    // A split index would write a file beside the user's index.
    let git = || store.git().work_tree(&root).env("GIT_INDEX_FILE", &index).config("core.splitIndex=false");
    let all = git().args(["add", "--all", "--", ":/"]);
    beside.iter().fold(all, |git, folder| git.arg(format!(":(top,exclude,literal){folder}"))).run()?;
    let tree = git().arg("write-tree").line()?;
    let tree = tree.parse().map_err(|_| work_tree::Error::Tree(tree))?;
    Ok(bare_commit(store, tree, Some(head))?)
}

/// Returns the commits of a range along first parents, oldest first, and the commit before them.
pub fn first_parents(store: &Store, range: &str, most: usize) -> Result<(Oid, Vec<Claim>), Error> {
    let log = store.git().args(["log", "-z", "--first-parent", "--reverse", "--no-show-signature", "--no-notes"]);
    let log =
        log.args(["--encoding=UTF-8", "--format=%H%n%P%n%an <%ae>%n%aI%n%s", &format!("--max-count={}", most + 1)]);
    let listed = log.args(["--end-of-options", range, "--"]).run().map_err(|error| match error {
        program::Error::Failed { .. } => Error::Range(range.to_owned(), error),
        other => other.into(),
    })?;
    let listed = String::from_utf8_lossy(&listed);
    let claims: Vec<(Claim, Option<Oid>)> =
        listed.split('\0').filter(|record| !record.is_empty()).map(claim).collect::<Option<_>>().ok_or(Error::Log)?;
    if claims.len() > most {
        return Err(Error::Many(most));
    }
    let (first, parent) = claims.first().ok_or_else(|| Error::Empty(range.to_owned()))?;
    let base = parent.ok_or(Error::Root(first.commit))?;
    let follows = claims.windows(2).all(|pair| pair[1].1 == Some(pair[0].0.commit));
    if !follows {
        return Err(Error::Broken(range.to_owned()));
    }
    Ok((base, claims.into_iter().map(|(claim, _)| claim).collect()))
}

/// A commit that was made before, with what it says about itself.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Claim {
    pub commit: Oid,
    pub author: String,
    pub date: String,
    pub subject: String,
}

/// Parses a record of the log, with the first parent.
fn claim(record: &str) -> Option<(Claim, Option<Oid>)> {
    let mut lines = record.splitn(5, '\n');
    let commit = lines.next()?.parse().ok()?;
    let parent = lines.next()?.split(' ').next().filter(|parent| !parent.is_empty());
    let parent = parent.map(str::parse).transpose().ok()?;
    let mut text = || lines.next().map(|line| line.trim_end_matches('\n').to_owned());
    Some((Claim { commit, author: text()?, date: text()?, subject: text()? }, parent))
}

/// Returns true if two commits have the same tree.
pub fn same_tree(store: &Store, one: Oid, other: Oid) -> Result<bool, Error> {
    let fixed = ["diff-tree", "-r", "--quiet", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"];
    Ok(store.git().args(fixed).args([one.to_string(), other.to_string()]).succeeds()?)
}

/// Returns the folder of the work tree.
pub fn root(store: &Store) -> Result<PathBuf, Error> {
    Ok(store.work_dir().as_deref().map(Path::to_owned).ok_or(work_tree::Error::Bare)?)
}

/// Failures to read the work tree or commits of it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no commit here yet")]
    Unborn,
    #[error("cannot copy the index to a temporary folder")]
    Folder(#[source] std::io::Error),
    #[error("cannot read what git log prints")]
    Log,
    #[error("the range {0:?} names no commits here")]
    Range(String, #[source] program::Error),
    #[error("the range {0:?} has no commits")]
    Empty(String),
    #[error("the range has more than {0} commits")]
    Many(usize),
    #[error("the commit {0} has no parent that the work could start from")]
    Root(Oid),
    #[error("the commits of {0:?} do not follow each other along first parents")]
    Broken(String),
    #[error(transparent)]
    WorkTree(#[from] work_tree::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Git(#[from] program::Error),
}
