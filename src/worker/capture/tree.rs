//! The tree of a worktree as it stands, made by git with nothing of the worker's but the files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::{Flags, Stat};
use gix::index::{File, State};

use super::part::Part;
use super::{Error, walk};
use crate::git::program::{self, Git};
use crate::git::stop::Stop;
use crate::model::digest::Oid;
use crate::worker::filters::Filters;
use crate::worker::folder::Folder;
use crate::worker::host::Host;
use crate::worker::workspace::{Base, Workspace};

/// The name of that directory in the attempt's folder.
const CAPTURE: &str = "capture";

/// The file in it of the settings by which filters run with our rights, where they do.
const FILTERS: &str = "filters";

/// A git directory of ours beside a worktree, with a copy of the index that we made at checkout; removed when dropped.
pub(in crate::worker) struct Scratch {
    folder: Arc<Folder>,
    dir: PathBuf,
    tree: PathBuf,
    attributes: Oid,
    stop: Stop,
    /// What time there is left.
    host: Host,
    /// Whether filters run with our rights.
    outside: bool,
    /// Where filters are looked for.
    path: Option<OsString>,
}

impl Scratch {
    /// Makes it; what an earlier capture of this attempt left is removed.
    pub(in crate::worker) fn new(workspace: &Workspace, host: &Host, base: &Base) -> Result<Self, Error> {
        let scratch = Self::without_index(&Part::of(workspace, host, base))?;
        let index = walk::index(workspace, base)?;
        let to = scratch.index();
        let copied = fs::File::create_new(&to).and_then(|mut file| {
            io::Write::write_all(&mut file, &index.bytes)?;
            // git hashes a file again that is not older than the index, so the copy must not look newer.
            file.set_modified(index.written)
        });
        copied.map_err(Error::at(&to))?;
        Ok(scratch)
    }

    /// Makes it with an index of some tracked files alone, of which git knows no file of the disk.
    pub(super) fn of(part: &Part<'_>, index: &State, paths: &BTreeSet<&BStr>) -> Result<Self, Error> {
        let scratch = Self::without_index(part)?;
        let mut some = State::new(index.object_hash());
        for entry in paths.iter().filter_map(|path| index.entry_by_path(path)) {
            some.dangerously_push_entry(Stat::default(), entry.id, Flags::empty(), entry.mode, entry.path(index));
        }
        let mut bytes = Vec::new();
        File::from_state(some, scratch.index())
            .write_to(&mut bytes, gix::index::write::Options::default())
            .map_err(|e| Error::Io(scratch.index(), io::Error::other(e)))?;
        fs::write(scratch.index(), bytes).map_err(Error::at(&scratch.index()))?;
        Ok(scratch)
    }

    fn without_index(part: &Part<'_>) -> Result<Self, Error> {
        let dir = part.workspace.dir.join(CAPTURE);
        let folder = Arc::clone(part.workspace.folder());
        let (tree, stop, path) = (part.dir(), part.host.stop.clone(), part.host.path.clone());
        let outside = matches!(part.host.filters, Filters::Outside) && part.git_dir.has_filters();
        let scratch = Self { folder, dir, tree, attributes: part.tree, stop, host: part.host.clone(), outside, path };
        scratch.folder.remove(CAPTURE).map_err(Error::at(&scratch.dir))?;
        part.git_dir.write(&scratch.dir).map_err(Error::at(&scratch.dir))?;
        if outside {
            let file = scratch.file(FILTERS);
            // Objects of git-lfs that the clean filter makes must outlive what they are captured
            // with.
            let settings = part.git_dir.filter_settings(part.git_dir.lfs());
            fs::write(&file, settings).map_err(Error::at(&file))?;
            part.git_dir.lend_annex(&scratch.dir).map_err(Error::at(&scratch.dir))?;
        }
        Ok(scratch)
    }

    /// Returns a path for a file that goes with this.
    pub(in crate::worker) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns where git puts the objects that it makes.
    pub(in crate::worker) fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// Adds paths of the worktree to the index: `add` is what git's command is given besides the paths.
    pub(in crate::worker) fn add(&self, add: &[&str], paths: &Paths) -> Result<(), program::Error> {
        let from_stdin = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        self.git().arg("add").args(add).args(from_stdin).input(paths.0.clone()).run().map(drop)
    }

    /// Puts paths of the worktree into the index as they are, ignored or not.
    pub(super) fn update(&self, paths: &BTreeSet<&BStr>) -> Result<(), program::Error> {
        let input: Vec<u8> = paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let options = ["--add", "--remove", "--replace", "-z", "--stdin"];
        self.git().arg("update-index").args(options).input(input).run().map(drop)
    }

    /// Writes the index as a tree.
    pub(in crate::worker) fn write(&self) -> Result<Oid, Error> {
        let line = self.git().arg("write-tree").line().map_err(Error::git)?;
        line.parse().map_err(|_| Error::Io(self.index(), std::io::Error::other("git wrote a tree without a name")))
    }

    /// Returns what git is to be told of attributes: where they are taken from.
    ///
    /// An older git reads the files of the worktree: a capture is refused where those are not the base's.
    pub(super) fn attributes(&self) -> Option<String> {
        // As a flag and not as a variable, which a git that does not know it would ignore.
        program::takes_attributes_from_trees().then(|| format!("--attr-source={}", self.attributes))
    }

    /// Reads the index as it stands.
    pub(in crate::worker) fn read_index(&self, part: &Part<'_>) -> Result<File, Error> {
        let options = gix::index::decode::Options::default();
        File::at(self.index(), part.tree.0.kind(), false, options)
            .map_err(|e| Error::Io(self.index(), io::Error::other(e)))
    }

    /// Returns a call of git that sees the worktree, and of all configuration only ours: it knows of no program to
    /// run, unless filters run with our rights.
    ///
    /// Whatever the worktree holds, it ends: when the time of the capture is up, or soon after the driver was told to end.
    pub(in crate::worker) fn git(&self) -> Git {
        let git = Git::new(&self.dir)
            .work_tree(&self.tree)
            .within(Some(self.host.time_left()))
            .unless(self.stop.clone())
            .most_memory(self.host.most_memory())
            .env("GIT_INDEX_FILE", self.index())
            // Every call is to know of the filters that one knows of: where there are none, git takes a file's bytes for what it took
            // of them.
            .env("GIT_CONFIG_GLOBAL", if self.outside { self.file(FILTERS) } else { "/dev/null".into() })
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Filters run in the worktree, where no module of Python's is to be looked for.
            .env("PYTHONSAFEPATH", "1");
        let git = match &self.path {
            Some(path) => git.env("PATH", path),
            None => git,
        };
        git.args(self.attributes())
    }

    pub(super) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now goes with the attempt's folder, or before the next capture.
        let _ = self.folder.remove(CAPTURE);
    }
}

/// Paths of a worktree as git takes them on its standard input.
#[derive(Clone, Debug, Default)]
pub(in crate::worker) struct Paths(Vec<u8>);

impl Paths {
    /// Everything.
    pub(in crate::worker) fn all() -> Self {
        let mut paths = Self::default();
        paths.push(b":(top)", b"");
        paths
    }

    /// Adds one path.
    pub(in crate::worker) fn with(mut self, path: &[u8]) -> Self {
        self.push(b":(top,literal)", path);
        self
    }

    /// Leaves one path out, with all below it.
    ///
    /// `info/exclude` does that too, but a worker's `.gitignore` can overrule it. The path is written as a pattern that begins
    /// with an escape: for a literal one that is ignored as well, `git add` fails as if it had been asked to add it.
    pub(in crate::worker) fn without(mut self, path: &[u8]) -> Self {
        let mut pattern = Vec::with_capacity(path.len() + 8);
        for (at, &byte) in path.iter().enumerate() {
            if at == 0 || matches!(byte, b'*' | b'?' | b'[' | b'\\') {
                pattern.push(b'\\');
            }
            pattern.push(byte);
        }
        self.push(b":(top,exclude,glob)", &pattern);
        pattern.extend_from_slice(b"/**");
        self.push(b":(top,exclude,glob)", &pattern);
        self
    }

    fn push(&mut self, magic: &[u8], path: &[u8]) {
        self.0.extend_from_slice(magic);
        self.0.extend_from_slice(path);
        self.0.push(0);
    }
}

/// What git says when the fault is not the worktree's.
const NOT_THE_WORKERS: [&str; 4] = ["No space left", "Input/output error", "unable to create", "unable to write"];

/// Returns what a failed `git add` means: `theirs` of what it said if the worktree is to blame, else an error of ours.
pub(in crate::worker) fn refusal(error: program::Error, theirs: impl FnOnce(&str) -> Error) -> Error {
    match &error {
        program::Error::Failed { said, .. } if !NOT_THE_WORKERS.iter().any(|text| said.contains(text)) => theirs(said),
        _ => Error::git(error),
    }
}

/// What stands before a path that is nothing but one.
const HERE: &[u8] = b"./";

/// So many paths git is asked about at once.
const AT_ONCE: usize = 50_000;

/// Returns those of the paths that git ignores in this worktree.
pub(in crate::worker) fn ignored(scratch: &Scratch, paths: &[impl AsRef<[u8]>]) -> Result<BTreeSet<BString>, Error> {
    let mut ignored = BTreeSet::new();
    for paths in paths.chunks(AT_ONCE) {
        // A name that begins with a colon is not to be one of git's magic words.
        let mut input = Vec::new();
        paths
            .iter()
            .for_each(|path| [HERE, path.as_ref(), b"\0"].iter().for_each(|part| input.extend_from_slice(part)));
        let answer = match scratch.git().args(["check-ignore", "-z", "--stdin"]).input(input).run() {
            // None of them.
            Err(program::Error::Failed { code: Some(1), .. }) => Vec::new(),
            other => other.map_err(Error::git)?,
        };
        let found = answer.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(HERE));
        ignored.extend(found.map(|path| path.as_bstr().to_owned()));
    }
    Ok(ignored)
}

/// Returns `path` relative to the worktree, slash-separated.
pub(in crate::worker) fn relative<'a>(workspace: &Workspace, path: &'a Path) -> &'a [u8] {
    let tree = workspace.tree();
    path.strip_prefix(tree).expect("our folders are inside the worktree").as_os_str().as_encoded_bytes()
}
