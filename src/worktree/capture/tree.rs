//! Writes the tree of a worktree with git, using only the files of the worker.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BStr, BString};
use gix::index::entry::{Flags, Stat};
use gix::index::{File, State};

use super::Error;
use super::part::Part;
use crate::git::cancellation::Cancellation;
use crate::git::ignored;
use crate::git::program::{self, Git};
use crate::model::digest::Oid;
use crate::sandbox::folder::Folder;
use crate::worktree::filters::Filters;
use crate::worktree::host::Host;
use crate::worktree::workspace::Workspace;

/// The name of that directory in the attempt's folder.
const CAPTURE: &str = "capture";

/// The file in it with the settings for unconfined filters.
const FILTERS: &str = "filters";

/// Our own git directory for a worktree, with a copy of the index from checkout. Removed when
/// dropped.
pub(crate) struct Scratch {
    folder: Arc<Folder>,
    dir: PathBuf,
    tree: PathBuf,
    attributes: Oid,
    stop: Cancellation,
    /// The remaining time.
    host: Host,
    /// True if filters run unconfined.
    outside: bool,
    /// The `PATH` for filters.
    path: Option<OsString>,
}

impl Scratch {
    /// Creates it with an index of some tracked files, without their file status. Removes that of
    /// an earlier capture of this attempt.
    pub(super) fn new(part: &Part<'_>, index: &State, paths: &BTreeSet<&BStr>) -> Result<Self, Error> {
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
            // Objects that the clean filter of git-lfs writes must outlive the capture.
            let settings = part.git_dir.filter_settings(part.git_dir.lfs());
            fs::write(&file, settings).map_err(Error::at(&file))?;
        }
        Ok(scratch)
    }

    /// Returns a path for a file with the same lifetime.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the directory of the objects that git writes.
    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// Updates files in the index, ignored or not.
    pub(super) fn update(&self, paths: &[&BStr], options: &[&str]) -> Result<(), program::Error> {
        let input: Vec<u8> = paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let call = self.git().args(["update-index", "--add", "--remove", "--replace"]).args(options);
        call.args(["-z", "--stdin"]).input(input).run().map(drop)
    }

    /// Returns git's option for reading attributes from a tree.
    ///
    /// An older git reads the worktree's files; then a capture is refused if they differ from the
    /// base's.
    pub(super) fn attributes(&self) -> Option<String> {
        // As an option, because an old git would ignore a variable.
        program::takes_attributes_from_trees().then(|| format!("--attr-source={}", self.attributes))
    }

    /// Reads the current index.
    pub(crate) fn read_index(&self, part: &Part<'_>) -> Result<File, Error> {
        let options = gix::index::decode::Options::default();
        File::at(self.index(), part.tree.0.kind(), false, options)
            .map_err(|e| Error::Io(self.index(), io::Error::other(e)))
    }

    /// Returns a git command for the worktree with only our configuration: it knows no programs to
    /// run unless filters run unconfined.
    ///
    /// It ends at the capture's time limit or soon after a cancellation.
    pub(crate) fn git(&self) -> Git {
        let git = Git::new(&self.dir)
            .work_tree(&self.tree)
            .within(Some(self.host.time_left()))
            .unless(self.stop.clone())
            .most_memory(self.host.most_memory())
            .env("GIT_INDEX_FILE", self.index())
            // Every command needs the same filters: without them, git would take a file's raw bytes
            // for its filtered ones.
            .env("GIT_CONFIG_GLOBAL", if self.outside { self.file(FILTERS) } else { "/dev/null".into() })
            .env("GIT_CONFIG_NOSYSTEM", "1")
            // Filters run in the worktree, which must not provide Python modules.
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
        // Remains are removed with the attempt's folder or before the next capture.
        let _ = self.folder.remove(CAPTURE);
    }
}

/// git's messages for faults that are not the worktree's.
const NOT_THE_WORKERS: [&str; 4] = ["No space left", "Input/output error", "unable to create", "unable to write"];

/// Interprets a failed addition: the worktree is refused if it is to blame.
pub(super) fn refusal(error: program::Error) -> Error {
    match &error {
        program::Error::Failed { stderr, .. } if !NOT_THE_WORKERS.iter().any(|text| stderr.contains(text)) => {
            Error::refused(format!("the worktree cannot be captured: {stderr}"))
        }
        _ => Error::git(error),
    }
}

/// Returns the paths that git ignores in this worktree.
pub(crate) fn ignored(scratch: &Scratch, paths: &[impl AsRef<[u8]>]) -> Result<BTreeSet<BString>, Error> {
    ignored::ignored(|| scratch.git(), paths).map_err(Error::git)
}

/// Returns `path` relative to the worktree, slash-separated.
pub(crate) fn relative<'a>(workspace: &Workspace, path: &'a Path) -> &'a [u8] {
    let tree = workspace.tree();
    path.strip_prefix(tree).expect("our folders are inside the worktree").as_os_str().as_encoded_bytes()
}
