//! Merges trees without a work tree and with a temporary index.

mod missing_files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::program::{self, Git};
use super::store::{self, Store};
use super::temporary::Temporary;
use super::work_tree::paths;
use crate::model::digest::Oid;
use crate::model::format;

/// A temporary index in which to patch and merge. Objects that it writes are unreachable until a
/// ref names them.
pub struct Scratch {
    store: Store,
    base: Oid,
    folder: Temporary,
    /// The directory for new objects, if it is not the repository.
    objects: Option<PathBuf>,
    /// The files of the base, if others chose it.
    foreign: Option<missing_files::Foreign>,
}

impl Scratch {
    /// Creates one for patches against a commit.
    pub fn new(store: &Store, commit: Oid) -> Result<Self, Error> {
        Self::with(store, commit, false)
    }

    /// Creates one that writes nothing into the repository: its objects are deleted with it.
    pub fn isolated(store: &Store, commit: Oid) -> Result<Self, Error> {
        Self::with(store, commit, true)
    }

    fn with(store: &Store, commit: Oid, is_isolated: bool) -> Result<Self, Error> {
        let folder = Temporary::new().map_err(Error::Folder)?;
        let objects = is_isolated.then(|| folder.path().join("objects"));
        if let Some(objects) = &objects {
            std::fs::create_dir(objects).map_err(Error::Folder)?;
        }
        let mut scratch = Self { store: store.clone(), base: commit, folder, objects, foreign: None };
        // The commit stands in for its tree until the tree is known.
        scratch.base = scratch.tree_of(commit)?;
        let index = scratch.folder.path().join("base");
        let tree = scratch.base.to_string();
        scratch.git().env("GIT_INDEX_FILE", index).args(["read-tree", &tree]).run()?;
        Ok(scratch)
    }

    /// Returns the tree that patches apply to.
    pub fn base(&self) -> Oid {
        self.base
    }

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: Oid) -> Result<Oid, Error> {
        oid(&self.git().args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).line()?)
    }

    /// Applies a patch to a tree. Ignores settings for white space and line ends.
    pub fn patched_on(&self, tree: Oid, patch: Vec<u8>) -> Result<Oid, program::Error> {
        let index = self.folder.path().join("index");
        let git = || self.git().env("GIT_INDEX_FILE", &index);
        if tree == self.base {
            std::fs::copy(self.folder.path().join("base"), &index).map_err(program::Error::Spawn)?;
        } else {
            git().args(["read-tree", &tree.to_string()]).run()?;
        }
        let apply = ["apply", "--cached", "--whitespace=nowarn", "--no-ignore-whitespace", "-p1", "-"];
        git().args(apply).input(patch).run()?;
        let written = self.write_tree(git())?;
        oid(&written).map_err(|_| program::Error::Spawn(std::io::Error::other("git write-tree names no tree")))
    }

    /// Returns what `git write-tree` prints for the index of `git`.
    pub(super) fn write_tree(&self, git: Git) -> Result<String, program::Error> {
        let git = git.arg("write-tree");
        if self.foreign.is_some() { git.arg("--missing-ok").line() } else { git.line() }
    }

    /// Merges two trees over a third, or returns the conflicting paths.
    pub fn merge(&self, over: Oid, ours: Oid, theirs: Oid) -> Result<Result<Oid, Vec<String>>, Error> {
        // Most items change different files and need no process here.
        if ours == over || ours == theirs {
            return Ok(Ok(theirs));
        }
        let (merged, conflicts) = self.merge_tree(&[], over, ours, theirs)?;
        Ok(conflicts
            .map_or(Ok(merged), |paths| Err(paths.iter().map(|path| path.to_string_lossy().into_owned()).collect())))
    }

    /// Merges two trees over a third. Returns the tree, with conflict markers, and the conflicting
    /// paths.
    pub fn merge_with_marks(&self, over: Oid, ours: Oid, theirs: Oid) -> Result<(Oid, BTreeSet<PathBuf>), Error> {
        let (merged, conflicts) = self.merge_tree(&[], over, ours, theirs)?;
        Ok((merged, conflicts.unwrap_or_default()))
    }

    /// Merges two trees over a third and prefers theirs where both changed the same lines. Returns
    /// `None` if conflicts remain.
    pub fn merge_preferring_theirs(&self, over: Oid, ours: Oid, theirs: Oid) -> Result<Option<Oid>, Error> {
        match self.merge_tree(&["-Xtheirs"], over, ours, theirs) {
            Ok((merged, conflicts)) => Ok(Some(merged).filter(|_| conflicts.is_none())),
            // git before 2.43 lacks this option.
            Err(Error::Git(program::Error::Failed { code: Some(129), .. })) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn merge_tree(
        &self,
        options: &[&str],
        over: Oid,
        ours: Oid,
        theirs: Oid,
    ) -> Result<(Oid, Option<BTreeSet<PathBuf>>), Error> {
        let over = self.as_commit(over, None)?;
        let sides = [self.as_commit(ours, Some(over))?.to_string(), self.as_commit(theirs, Some(over))?.to_string()];
        let call = self.git().args(["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"]);
        answer(call.args(options).args(sides))
    }

    /// Returns the paths in which two trees differ.
    pub fn changed(&self, from: Oid, to: Oid) -> Result<BTreeSet<String>, Error> {
        let listed = self.git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-only"]);
        let listed = listed.args([from.to_string(), to.to_string()]).run()?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Returns the paths in which two trees differ, each with git's status letter.
    pub fn changes(&self, from: Oid, to: Oid) -> Result<Vec<(char, String)>, Error> {
        let listed = self.git().args(["diff-tree", "-r", "-z", "--no-renames", "--name-status"]);
        let listed = listed.args([from.to_string(), to.to_string()]).run()?;
        let fields: Vec<_> = listed.split(|byte| *byte == 0).filter(|field| !field.is_empty()).collect();
        Ok(fields
            .chunks_exact(2)
            .map(|pair| (char::from(pair[0][0]), String::from_utf8_lossy(pair[1]).into_owned()))
            .collect())
    }

    /// Returns the links in a tree.
    pub fn links(&self, tree: Oid) -> Result<Vec<String>, Error> {
        let listed = self.git().args(["ls-tree", "-r", "-z", &tree.to_string()]).run()?;
        let lines = listed.split(|byte| *byte == 0).filter(|line| line.starts_with(b"120000 "));
        Ok(lines
            .filter_map(|line| {
                let tab = line.iter().position(|byte| *byte == b'\t')?;
                Some(String::from_utf8_lossy(&line[tab + 1..]).into_owned())
            })
            .collect())
    }

    /// Reads a file of a tree, or returns `None` if it has no such file.
    pub fn file(&self, tree: Oid, path: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.git().args(["cat-file", "blob", &format!("{tree}:{path}")]).run() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(program::Error::Failed { code: Some(128), .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a commit of a tree, for merging.
    pub fn as_commit(&self, tree: Oid, parent: Option<Oid>) -> Result<Oid, Error> {
        if self.objects.is_none() {
            return Ok(bare_commit(&self.store, tree, parent)?);
        }
        let call = self.git().args(["hash-object", "-t", "commit", "-w", "--stdin"]);
        oid(&call.input(bare_commit_bytes(tree, parent)).line()?)
    }

    /// Returns the folder, for files with the same lifetime.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a git command see the objects written here.
    pub(super) fn seen_by(&self, git: Git) -> Git {
        let Some(objects) = &self.objects else { return git };
        // git unquotes the list, so a quoted path may contain any byte.
        let theirs = self.store.objects_dir();
        let mut quoted = vec![b'"'];
        for byte in theirs.as_os_str().as_encoded_bytes() {
            quoted.extend(matches!(byte, b'"' | b'\\').then_some(b'\\').into_iter().chain([*byte]));
        }
        quoted.push(b'"');
        let quoted: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(quoted);
        git.env("GIT_OBJECT_DIRECTORY", objects).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted)
    }

    /// Attributes come from the base: neither the current folder nor an item's changes affect
    /// merging.
    pub fn git(&self) -> Git {
        let git = self.store.git().work_tree(self.folder.path()).env("GIT_NO_REPLACE_OBJECTS", "1");
        let git = self.seen_by(git.env("GIT_ATTR_SOURCE", self.base.to_string()));
        if self.foreign.is_some() { git.within_memory() } else { git }
    }
}

/// Writes an unreferenced commit of a tree: git before 2.45 merges only commits, and before 2.40
/// only over their merge base.
pub(super) fn bare_commit(store: &Store, tree: Oid, parent: Option<Oid>) -> Result<Oid, store::Error> {
    store.write(gix::objs::Kind::Commit, bare_commit_bytes(tree, parent).as_bytes())
}

fn bare_commit_bytes(tree: Oid, parent: Option<Oid>) -> String {
    let who = format!("{} <{}> 0 +0000", format::COMMITTER, format::EMAIL);
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n")
}

/// Fails if git has no identity for the committer.
pub fn identified(store: &Store) -> Result<(), program::Error> {
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        store.git().args(["var", who]).run()?;
    }
    Ok(())
}

/// Creates a commit with the user's configuration, signed if that asks for it. No ref points at it
/// yet.
pub fn commit(store: &Store, tree: Oid, parent: Oid, message: &str) -> Result<Oid, program::Error> {
    let signs = store.git().args(["config", "--type=bool", "--get", "commit.gpgSign"]).line();
    let sign = if signs.is_ok_and(|answer| answer == "true") { &["-S"][..] } else { &[] };
    commit_tree(store, sign, tree, parent, message)
}

/// Creates a commit with the user's configuration but never signed, because git rewrites it.
pub fn unsigned(store: &Store, tree: Oid, parent: Oid, message: &str) -> Result<Oid, program::Error> {
    commit_tree(store, &[], tree, parent, message)
}

fn commit_tree(store: &Store, options: &[&str], tree: Oid, parent: Oid, message: &str) -> Result<Oid, program::Error> {
    let call =
        store.git().arg("commit-tree").args(options).args(["-p", &parent.to_string(), "-F", "-", &tree.to_string()]);
    let id = call.input(message).line()?;
    id.parse().map_err(|_| program::Error::Spawn(std::io::Error::other("git commit-tree names no commit")))
}

/// Runs `git merge-tree -z --name-only`. Returns the tree and the conflicting paths, if any.
pub(super) fn answer(call: Git) -> Result<(Oid, Option<BTreeSet<PathBuf>>), Error> {
    let mut output = Vec::new();
    let result = call.stream(&mut |chunk| {
        output.extend_from_slice(chunk);
        Ok(())
    });
    let end = output.iter().position(|byte| *byte == 0).unwrap_or(output.len());
    let tree = oid(&String::from_utf8_lossy(&output[..end]));
    match result {
        Ok(()) => Ok((tree?, None)),
        Err(program::Error::Failed { code: Some(1), .. }) if !output.is_empty() => {
            Ok((tree?, Some(paths(&output[end..]).collect())))
        }
        Err(other) => Err(other.into()),
    }
}

/// Parses an object id that git printed.
pub fn oid(text: &str) -> Result<Oid, Error> {
    text.parse().map_err(|_| Error::Answer(text.to_owned()))
}

errors! {
    /// Why a merge failed, other than by conflicts.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Folder(#[source] std::io::Error): "cannot create a temporary folder";
    Answer(String): "git names an object as {0:?}";
    #[from] Git(program::Error), Store(store::Error);
}
