//! A checkout that writes the difference of two trees into a work tree, and undoes what it wrote if
//! it fails.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FallocateFlags, access, fallocate};
use rustix::process::{Resource, getrlimit};

use super::partial_checkout::{Change, changes};
use super::program::{self, Git};
use super::restore_worktree;
use super::work_tree::paths;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::printable::first_of;

/// The most files that a failure names.
const NAMED: usize = 20;

/// The space that a file may need beyond its bytes.
const PER_FILE: u64 = 8 << 10;

/// A checkout that is about to write files, with their state before it.
pub struct Checkout<'a> {
    /// Creates git commands with the work tree, and with an index that has the entries of `from`.
    git: &'a dyn Fn() -> Git,
    root: &'a Path,
    from: Oid,
    to: Oid,
    changes: Vec<Change>,
    /// The changed files that were missing before.
    absent: BTreeSet<PathBuf>,
    /// The files that get a conflict, whose content is known to git alone.
    conflicting: BTreeSet<PathBuf>,
}

impl<'a> Checkout<'a> {
    /// Reads the difference, and which of its files exist. Submodules are left out.
    pub fn begin(git: &'a dyn Fn() -> Git, root: &'a Path, from: Oid, to: Oid) -> Result<Self, program::Error> {
        let changes = changes(git, from, to)?;
        let absent = changes
            .iter()
            .map(|change| &change.path)
            .filter(|path| fs::symlink_metadata(root.join(path)).is_err())
            .cloned()
            .collect();
        Ok(Self { git, root, from, to, changes, absent, conflicting: BTreeSet::new() })
    }

    /// Reads the difference after the checkout failed. git must have found no local changes to the
    /// files, of which some get a conflict.
    pub fn failed(
        git: &'a dyn Fn() -> Git,
        root: &'a Path,
        (from, to): (Oid, Oid),
        conflicting: BTreeSet<PathBuf>,
    ) -> Result<Self, program::Error> {
        let changes = changes(git, from, to)?;
        Ok(Self { git, root, from, to, changes, absent: BTreeSet::new(), conflicting })
    }

    /// Limits the checkout to some paths.
    #[must_use]
    pub fn only(mut self, paths: &BTreeSet<PathBuf>) -> Self {
        self.changes.retain(|change| paths.contains(&change.path));
        self
    }

    /// Fails if a folder in which files change cannot be written.
    pub fn check_folders(&self) -> Result<(), Error> {
        let folders = self.changes.iter().filter_map(|change| change.path.parent());
        for folder in folders.collect::<BTreeSet<_>>() {
            let folder = self.existing_folder(folder);
            access(self.root.join(folder), Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|error| Error::Folder(self.root.join(folder), error.into()))?;
        }
        Ok(())
    }

    /// Returns the nearest folder that exists, in which a missing one is made.
    fn existing_folder<'p>(&self, folder: &'p Path) -> &'p Path {
        folder.ancestors().find(|folder| self.root.join(folder).is_dir()).unwrap_or(Path::new(""))
    }

    /// Undoes what the checkout wrote before it failed.
    ///
    /// Removes new files that have the new content or the start of it, and restores replaced and
    /// removed files from the index. Leaves every other file alone.
    pub fn undo(&self, cause: impl StdError + Send + Sync + 'static) -> Error {
        // Undoing frees the space that was missing.
        let reason = self.find_reason();
        let (undone, left) = match self.restore() {
            Ok(files) => files,
            // Without git nothing can be restored.
            Err(_) => (BTreeSet::new(), self.written().unwrap_or_default()),
        };
        Error::Write(Box::new(Failed { reason, undone, left, cause: Box::new(cause) }))
    }

    /// Restores the files. Returns those that were restored, and those that were not.
    fn restore(&self) -> Result<(BTreeSet<PathBuf>, BTreeSet<PathBuf>), program::Error> {
        let written = self.written()?;
        for path in &written {
            // A file that cannot be removed is listed below.
            let _ = restore_worktree::remove(self.root, path);
        }
        let lost: BTreeSet<PathBuf> = self
            .unstaged()?
            .filter(|change| change.old.is_some() && !self.absent.contains(&change.path))
            .filter(|change| fs::symlink_metadata(self.root.join(&change.path)).is_err())
            .map(|change| change.path.clone())
            .collect();
        if !lost.is_empty() {
            let call = (self.git)().args(["checkout-index", "--force", "-q", "-z", "--stdin"]);
            // The files that git could not write are listed below.
            let _ = call.input(restore_worktree::listed(&lost)).run();
            let _ = (self.git)().args(["update-index", "--refresh"]).succeeds();
        }
        let mut left = self.written()?;
        left.extend(self.differing()?.intersection(&lost).cloned());
        let undone = written.union(&lost).filter(|path| !left.contains(*path)).cloned().collect();
        Ok((undone, left))
    }

    /// Returns the files that have the new content, or the start of it.
    fn written(&self) -> Result<BTreeSet<PathBuf>, program::Error> {
        let differing = self.differing()?;
        let may_be =
            |change: &&Change| change.new.is_some() && (change.old.is_none() || differing.contains(&change.path));
        let found = self.unstaged()?.filter(may_be).filter(|change| self.is_written(&change.path));
        Ok(found.map(|change| change.path.clone()).collect())
    }

    /// Returns the changes of files for which the index has the original entry.
    fn unstaged(&self) -> Result<impl Iterator<Item = &Change>, program::Error> {
        let call = (self.git)().args(["diff-index", "--cached", "-z", "--no-renames", "--name-only"]);
        let staged: BTreeSet<PathBuf> = paths(&call.arg(self.from.to_string()).run()?).collect();
        Ok(self.changes.iter().filter(move |change| !staged.contains(&change.path)))
    }

    /// Returns the files that differ from the index.
    fn differing(&self) -> Result<BTreeSet<PathBuf>, program::Error> {
        let _ = (self.git)().args(["update-index", "--refresh"]).succeeds();
        let listed = (self.git)().args(["diff-files", "-z", "--no-renames", "--name-only"]).run()?;
        Ok(paths(&listed).collect())
    }

    /// Returns true if a file has the new content, or the start of it.
    fn is_written(&self, path: &Path) -> bool {
        if self.conflicting.contains(path) {
            return true;
        }
        let mut name = OsString::from(format!("{}:", self.to));
        name.push(path);
        // The checkout may have changed which filters apply.
        ["--filters", "blob"].iter().any(|form| {
            let Ok(file) = open(&self.root.join(path)) else { return false };
            is_start(file, (self.git)().args(["cat-file", form]).arg(&name)).unwrap_or(false)
        })
    }

    /// Returns why the rest cannot be written, which git often does not say.
    fn find_reason(&self) -> Option<io::Error> {
        let sizes = self.sizes().unwrap_or_default();
        let mut needed: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
        for (change, size) in self.changes.iter().filter(|change| change.new.is_some()).zip(sizes) {
            let there = fs::symlink_metadata(self.root.join(&change.path)).map_or(0, |meta| meta.len());
            let folder = self.root.join(self.existing_folder(change.path.parent()?));
            if let (true, Ok(meta)) = (there != size, fs::metadata(&folder)) {
                // Parts of a work tree may be on other file systems.
                needed.entry(meta.dev()).or_insert((folder, 0)).1 += size.saturating_sub(there) + PER_FILE;
            }
        }
        needed.values().find_map(|(folder, bytes)| try_space(folder, *bytes)).or_else(|| {
            let folder = (self.git)().args(["rev-parse", "--absolute-git-dir"]).line().ok()?;
            let index = fs::metadata(Path::new(&folder).join("index")).map_or(0, |meta| meta.len());
            try_space(Path::new(&folder), index + PER_FILE)
        })
    }

    /// Returns the sizes of the new files.
    fn sizes(&self) -> Result<Vec<u64>, program::Error> {
        let changed = self.changes.iter().filter(|change| change.new.is_some());
        let names: Vec<&str> = changed.flat_map(|change| [change.object.as_str(), "\n"]).collect();
        let listed = (self.git)().args(["cat-file", "--batch-check=%(objectsize)"]).input(names.concat()).run()?;
        Ok(String::from_utf8_lossy(&listed).lines().map(|line| line.parse().unwrap_or(0)).collect())
    }
}

/// Opens a file, or the target of a symbolic link as if it were a file's content.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        return Ok(Box::new(io::Cursor::new(fs::read_link(path)?.into_os_string().into_encoded_bytes())));
    }
    if meta.is_file() { Ok(Box::new(File::open(path)?)) } else { Err(io::ErrorKind::IsADirectory.into()) }
}

/// Returns true if the bytes are the output of a git command, or the start of it.
fn is_start(mut file: Box<dyn Read>, git: Git) -> Result<bool, program::Error> {
    let (mut is_same, mut is_over) = (true, false);
    git.stream(&mut |chunk| {
        if is_same && !is_over {
            let mut bytes = Vec::new();
            file.by_ref().take(chunk.len() as u64).read_to_end(&mut bytes)?;
            is_same = chunk.starts_with(&bytes);
            is_over = bytes.len() < chunk.len();
        }
        Ok(())
    })?;
    Ok(is_same && (is_over || file.read(&mut [0]).is_ok_and(|read| read == 0)))
}

/// Returns why a file of some bytes cannot be made in a folder, or `None` if it can, or if the file
/// system cannot say.
fn try_space(folder: &Path, bytes: u64) -> Option<io::Error> {
    // Beyond this limit the system ends the process.
    if getrlimit(Resource::Fsize).current.is_some_and(|most| bytes > most) {
        return None;
    }
    let tried = tempfile::tempfile_in(folder)
        .and_then(|file| fallocate(file, FallocateFlags::empty(), 0, bytes.max(1)).map_err(Into::into));
    tried.err().filter(|error| error.kind() != io::ErrorKind::Unsupported)
}

errors! {
    /// Why a checkout did not happen.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Folder(PathBuf, #[source] io::Error): "cannot write into the folder {}; nothing was changed" [.0.display()];
    #[from] Write(Box<Failed>);
}

/// A checkout that failed while it wrote files.
#[derive(Debug)]
pub struct Failed {
    reason: Option<io::Error>,
    undone: BTreeSet<PathBuf>,
    left: BTreeSet<PathBuf>,
    cause: Box<dyn StdError + Send + Sync>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot write the files of the work tree")?;
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        match (self.undone.is_empty(), self.left.is_empty()) {
            (true, true) => f.write_str("; nothing was changed"),
            (false, true) => write!(f, "; written and taken back: {}", list_files(&self.undone)),
            (true, false) => write!(f, "; not taken back: {}", list_files(&self.left)),
            (false, false) => {
                write!(
                    f,
                    "; written and taken back: {}; not taken back: {}",
                    list_files(&self.undone),
                    list_files(&self.left)
                )
            }
        }
    }
}

fn list_files(files: &BTreeSet<PathBuf>) -> String {
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    first_of(&names, NAMED)
}

impl StdError for Failed {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.cause.as_ref())
    }
}

/// The kind of an obstacle to writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The file system, or a quota on it, is full.
    Space,
    /// A file or folder, or the file system, cannot be written.
    Permission,
}

impl Error {
    /// Returns the obstacle, or `None` if it is neither space nor a permission.
    pub fn obstacle(&self) -> Option<Obstacle> {
        let words = match self {
            Self::Folder(_, error) => return of_io(error),
            Self::Write(failed) => match failed.reason.as_ref().and_then(of_io) {
                Some(obstacle) => return Some(obstacle),
                None => in_words(failed.cause.as_ref()),
            },
        };
        match () {
            () if mention_any(&["No space left on device", "Disk quota exceeded"], &words) => Some(Obstacle::Space),
            () if mention_any(&["Permission denied", "Operation not permitted", "Read-only file system"], &words) => {
                Some(Obstacle::Permission)
            }
            () => None,
        }
    }
}

fn mention_any(reasons: &[&str], words: &str) -> bool {
    reasons.iter().any(|reason| words.contains(reason))
}

fn of_io(error: &io::Error) -> Option<Obstacle> {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => Some(Obstacle::Space),
        PermissionDenied | ReadOnlyFilesystem => Some(Obstacle::Permission),
        _ => None,
    }
}
