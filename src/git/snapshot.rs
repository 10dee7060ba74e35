//! Reads the user's work tree as it is: what differs from a commit, and the whole as a commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

use super::merge::bare_commit;
use super::program::{self, Git};
use super::store::{self, Store};
use super::work_tree::{self, copy_of_index, paths};
use crate::model::digest::Oid;

/// The user's work tree, compared with a commit as if nothing was known of its files: flags, times
/// and sizes of the index, which a command can set, do not count.
pub struct Snapshot<'s> {
    store: &'s Store,
    root: PathBuf,
    /// Has an index of the commit alone.
    folder: TempDir,
}

impl<'s> Snapshot<'s> {
    /// Prepares the comparison with a commit.
    pub fn new(store: &'s Store, commit: Oid) -> Result<Self, Error> {
        let root = store.work_dir().ok_or(work_tree::Error::Bare)?;
        let snapshot = Self { store, root, folder: tempfile::tempdir().map_err(Error::Folder)? };
        snapshot.git().args(["read-tree", &commit.to_string()]).run()?;
        Ok(snapshot)
    }

    /// Returns the folder of the work tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn git(&self) -> Git {
        let git = self.store.git().work_tree(&self.root).env("GIT_INDEX_FILE", self.folder.path().join("index"));
        git.config("core.splitIndex=false").config("core.checkStat=default").config("core.trustctime=true")
    }

    /// Returns the files and links of the commit.
    pub fn tracked(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let listed = self.git().args(["ls-files", "--stage", "-z"]).run()?;
        let files = listed.split(|byte| *byte == 0).filter(|line| !line.starts_with(b"160000 "));
        let names = files.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(names.flat_map(paths).collect())
    }

    /// Returns the files that are not in the commit and that the rules do not ignore. A nested
    /// repository is one path.
    pub fn untracked(&self, rules: &IgnoreRules) -> Result<BTreeSet<PathBuf>, Error> {
        let list = self.git().args(["ls-files", "--others", "-z", "--exclude-per-directory=.gitignore"]);
        let files = rules.files.iter().map(|file| format!("--exclude-from={}", file.path().display()));
        Ok(paths(&list.args(files).run()?).collect())
    }

    /// Returns the paths that differ from the commit, without submodules and everything below the
    /// `excluded` folders.
    pub fn changed(&self, rules: &IgnoreRules, excluded: &[&str]) -> Result<BTreeSet<PathBuf>, Error> {
        // The index knows nothing of the files yet, and its answer is only whether some differ.
        self.git().args(["update-index", "-q", "--really-refresh"]).succeeds()?;
        let list = self.git().args(["diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=all"]);
        let mut changed: BTreeSet<PathBuf> = paths(&list.run()?).collect();
        changed.extend(self.untracked(rules)?);
        let absent = self.absent()?;
        changed.retain(|path| !excluded.iter().any(|folder| path.starts_with(folder)) && !absent.contains(path));
        Ok(changed)
    }

    /// Returns the files that the user's index leaves out of the work tree, as a sparse checkout
    /// does, and that are not there.
    pub fn absent(&self) -> Result<BTreeSet<PathBuf>, Error> {
        let listed = self.store.git().work_tree(&self.root).args(["ls-files", "-t", "-z"]).run()?;
        let left_out = listed.split(|byte| *byte == 0).filter_map(|line| line.strip_prefix(b"S "));
        Ok(left_out.flat_map(paths).filter(|path| std::fs::symlink_metadata(self.root.join(path)).is_err()).collect())
    }
}

/// The rules besides `.gitignore` files for what git ignores, as they were when this was read.
pub struct IgnoreRules {
    files: Vec<NamedTempFile>,
}

impl IgnoreRules {
    /// Copies `info/exclude` and the user's own file, which is `usual` if no setting names another.
    pub fn read(store: &Store, usual: Option<PathBuf>) -> Result<Self, Error> {
        let own = store.git().args(["config", "--type=path", "--get", "core.excludesFile"]).line();
        let sources = [Some(store.common_dir().join("info/exclude")), own.ok().map(PathBuf::from).or(usual)];
        let files = sources.into_iter().flatten().filter_map(|from| copy_rules(&from).transpose());
        Ok(Self { files: files.collect::<std::io::Result<_>>().map_err(Error::Folder)? })
    }
}

fn copy_rules(from: &Path) -> std::io::Result<Option<NamedTempFile>> {
    let Ok(rules) = std::fs::read(from) else { return Ok(None) };
    let mut copy = NamedTempFile::new()?;
    std::io::Write::write_all(&mut copy, &rules)?;
    Ok(Some(copy))
}

/// Writes a commit of the work tree on top of `HEAD`, without the `excluded` folders. Neither the
/// index nor a ref changes.
pub fn commit(store: &Store, excluded: &[&str]) -> Result<Oid, Error> {
    let root = store.work_dir().ok_or(work_tree::Error::Bare)?;
    let (head, _) = work_tree::head(store)?.ok_or(Error::Unborn)?;
    let folder = tempfile::tempdir().map_err(Error::Folder)?;
    let index = copy_of_index(store, folder.path()).map_err(Error::Folder)?;
    // A split index would write a file beside the user's index.
    let git = || store.git().work_tree(&root).env("GIT_INDEX_FILE", &index).config("core.splitIndex=false");
    let all = git().args(["add", "--all", "--", ":/"]);
    excluded.iter().fold(all, |call, name| call.arg(format!(":(top,exclude,literal){name}"))).run()?;
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

errors! {
    /// Failures to read the work tree or commits of it.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unborn: "there is no commit here yet";
    Folder(#[source] std::io::Error): "cannot write to a temporary folder";
    Log: "cannot read what git log prints";
    Range(String, #[source] program::Error): "the range {0:?} names no commits here";
    Empty(String): "the range {0:?} has no commits";
    Many(usize): "the range has more than {0} commits";
    Root(Oid): "the commit {0} has no parent that the work could start from";
    Broken(String): "the commits of {0:?} do not follow each other along first parents";
    #[from] WorkTree(work_tree::Error), Store(store::Error), Git(program::Error);
}
