//! Gives protected files their reference state while a check runs.
//!
//! The files of the reference state are checked out beside the worktree first. A file of the
//! worktree that differs is moved aside, and the reference file takes its place. After the check
//! everything moves back, so that the product is the worker's. No process of the attempt may run
//! meanwhile, so paths are safe; links are never followed.

mod tracked;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString};

use crate::git::merge::{self, Scratch};
use crate::git::protected::{self, Consumed, Protection, Reference, SUBMODULE};
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::protected::ProtectedChange;
use crate::worktree::held_out::{self, HeldOut};
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Workspace};

/// The folder of an attempt for reference files and for files moved aside.
const FOLDER: &str = "protect";
/// The most files of a worktree that are searched for protected ones.
const MOST_FILES: usize = 2_000_000;
/// The most nested folders.
const DEEPEST: usize = 256;

/// The protected files of an attempt.
pub struct Guard {
    scratch: Scratch,
    pathspecs: Vec<String>,
    /// True if only files of the base and of the reference state are protected.
    tracked: bool,
    reference: Reference,
    /// The tree of the base with the reference state, if files are protected.
    pub tree: Option<Oid>,
    held_out: Option<HeldOut>,
}

impl Guard {
    /// Computes the reference state of an attempt at `base`. `held_out` is laid over it.
    pub fn new(
        store: &Store,
        base: Oid,
        pathspecs: &[String],
        consumed: &[Consumed],
        held_out: Option<HeldOut>,
    ) -> Result<Self, Error> {
        let scratch = Scratch::new(store, base)?;
        if pathspecs.is_empty() {
            let (pathspecs, reference) = (Vec::new(), Reference::default());
            return Ok(Self { scratch, pathspecs, tracked: false, reference, tree: None, held_out });
        }
        let protection = Protection::new(&scratch, pathspecs);
        let reference = protection.reference(consumed)?;
        let tree = Some(protection.tree(&reference)?);
        Ok(Self { pathspecs: pathspecs.to_vec(), tracked: false, reference, tree, scratch, held_out })
    }

    /// Returns the changes of a patch to protected files.
    pub fn changes(&self, patch: Option<Vec<u8>>) -> Result<Vec<ProtectedChange>, Error> {
        if self.pathspecs.is_empty() {
            return Ok(Vec::new());
        }
        let product = match patch {
            Some(patch) => self.scratch.patched(patch).map_err(merge::Error::Git)?,
            None => self.scratch.base(),
        };
        Ok(self.protection().changes(&self.reference, product)?)
    }

    fn protection(&self) -> Protection<'_> {
        Protection::new(&self.scratch, &self.pathspecs)
    }

    /// Writes a patch of an attempt into a fresh worktree of the base.
    pub fn write_product(&self, host: &Host, workspace: &Workspace, patch: Vec<u8>) -> Result<(), Error> {
        let product = self.scratch.patched(patch).map_err(merge::Error::Git)?;
        let folder = workspace.dir.join(FOLDER);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let (mut gone, mut new) = (Vec::new(), BTreeMap::new());
        for (path, entry) in protected::differences(&self.scratch, product)? {
            match entry {
                Some(entry) if entry.mode != SUBMODULE => drop(new.insert(path, entry)),
                Some(_) => {}
                None => gone.push(path),
            }
        }
        let written = workspace.write_files(host, &folder, new.iter())?;
        let place = |path: &BString| workspace.tree().join(OsStr::from_bytes(path));
        gone.iter().chain(&written).try_for_each(|path| remove(&place(path)))?;
        for path in &written {
            let place = place(path);
            let parent = place.parent().unwrap_or(&place);
            fs::create_dir_all(parent).map_err(Error::io(parent))?;
            fs::rename(folder.join(OsStr::from_bytes(path)), &place).map_err(Error::io(&place))?;
        }
        workspace.folder().remove(FOLDER).map_err(Error::io(&folder))
    }

    /// Gives the protected files of a worktree their reference state.
    pub fn enforce<'a>(&'a self, host: &'a Host, workspace: &'a Workspace) -> Result<Enforced<'a>, Error> {
        if workspace.is_in_doubt() {
            return Err(Error::StillRunning);
        }
        if !workspace.is_in_place() {
            return Err(Error::Moved);
        }
        let folder = workspace.dir.join(FOLDER);
        workspace.folder().remove(FOLDER).map_err(Error::io(&folder))?;
        for dir in ["files", "aside"] {
            fs::create_dir_all(folder.join(dir)).map_err(Error::io(&folder))?;
        }
        let files = self.reference.files.iter().filter(|(_, entry)| entry.mode != SUBMODULE);
        let files = workspace.write_files(host, &folder.join("files"), files)?;
        let mut enforced = Enforced {
            guard: self,
            host,
            workspace,
            folder,
            files,
            left: BTreeSet::new(),
            moved: Vec::new(),
            written: Vec::new(),
            made: Vec::new(),
        };
        match enforced.apply() {
            Ok(()) => Ok(enforced),
            Err(error) => {
                enforced.restore()?;
                Err(error)
            }
        }
    }

    /// Returns the protected files and links in a worktree, tracked or not.
    fn find(&self, host: &Host, workspace: &Workspace) -> Result<BTreeSet<BString>, Error> {
        if self.pathspecs.is_empty() && !self.tracked {
            return Ok(BTreeSet::new());
        }
        let tree = workspace.tree();
        let own = [".git", &host.inputs, &host.outputs];
        let mut found = BTreeMap::new();
        let mut folders = vec![(BString::default(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let dir = tree.join(OsStr::from_bytes(&folder));
            for entry in fs::read_dir(&dir).map_err(Error::io(&dir))? {
                let entry = entry.map_err(Error::io(&dir))?;
                let mut path = folder.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(entry.file_name().as_bytes());
                if own.iter().any(|own| path == *own) {
                    continue;
                }
                let kind = entry.file_type().map_err(Error::io(&dir))?;
                if kind.is_dir() && depth < DEEPEST {
                    folders.push((path, depth + 1));
                } else if found.len() < MOST_FILES {
                    found.insert(as_index_path(path.as_ref()), path);
                } else {
                    return Err(Error::TooMany);
                }
            }
        }
        if self.tracked {
            let is_tracked =
                |path: &BString| self.reference.base.contains_key(path) || self.reference.files.contains_key(path);
            return Ok(found.into_values().filter(is_tracked).collect());
        }
        let selected = self.protection().select(found.keys().map(AsRef::as_ref))?;
        Ok(selected.iter().filter_map(|path| found.get(path).cloned()).collect())
    }
}

/// Returns a path that git accepts in an index: it refuses components named `.git`.
fn as_index_path(path: &BStr) -> BString {
    let part = |part: &[u8]| -> Vec<u8> {
        if part.eq_ignore_ascii_case(b".git") { [part, b"\x01"].concat() } else { part.to_vec() }
    };
    BString::from(path.split(|byte| *byte == b'/').map(part).collect::<Vec<_>>().join(&b'/'))
}

/// A worktree whose protected files have their reference state.
pub struct Enforced<'a> {
    guard: &'a Guard,
    host: &'a Host,
    workspace: &'a Workspace,
    folder: PathBuf,
    /// The protected files of the reference state that a worktree has.
    files: BTreeSet<BString>,
    /// Protected files that were left as they are.
    left: BTreeSet<BString>,
    /// Entries moved aside, with their names there.
    moved: Vec<(PathBuf, PathBuf)>,
    /// Reference files in the worktree.
    written: Vec<PathBuf>,
    /// Folders created for them.
    made: Vec<PathBuf>,
}

impl Enforced<'_> {
    fn apply(&mut self) -> Result<(), Error> {
        let found = self.guard.find(self.host, self.workspace)?;
        for path in found.union(&self.files.clone()) {
            let place = self.place(path);
            let is_reference = self.files.contains(path);
            if is_reference && found.contains(path) && is_same(&self.reference_file(path), &place)? {
                self.left.insert(path.clone());
                continue;
            }
            if is_reference {
                // A link in place of a parent must be gone before the path is used.
                self.make_parents(&place)?;
            }
            if fs::symlink_metadata(&place).is_ok() {
                self.move_aside(&place)?;
            }
            if is_reference {
                fs::rename(self.reference_file(path), &place).map_err(Error::io(&place))?;
                self.written.push(place);
            }
        }
        self.lay_over()
    }

    /// Copies the held-out files over the worktree.
    fn lay_over(&mut self) -> Result<(), Error> {
        let Some(held_out) = &self.guard.held_out else { return Ok(()) };
        held_out.expect_unchanged()?;
        for path in held_out.paths() {
            let place = self.workspace.tree().join(path);
            self.make_parents(&place)?;
            if fs::symlink_metadata(&place).is_ok() {
                self.move_aside(&place)?;
            }
            self.written.push(place.clone());
            held_out.copy(path, &place).map_err(Error::io(&place))?;
        }
        Ok(())
    }

    /// Returns the number of protected files that differed from their reference state.
    pub fn restored(&self) -> usize {
        self.moved.len().max(self.written.len())
    }

    fn place(&self, path: &BString) -> PathBuf {
        self.workspace.tree().join(OsStr::from_bytes(path))
    }

    fn reference_file(&self, path: &BString) -> PathBuf {
        self.folder.join("files").join(OsStr::from_bytes(path))
    }

    fn move_aside(&mut self, place: &Path) -> Result<(), Error> {
        let aside = self.folder.join("aside").join(self.moved.len().to_string());
        fs::rename(place, &aside).map_err(Error::io(place))?;
        self.moved.push((place.to_owned(), aside));
        Ok(())
    }

    /// Creates the folders around a file, and moves aside what is in their place.
    fn make_parents(&mut self, place: &Path) -> Result<(), Error> {
        let tree = self.workspace.tree();
        let parents: Vec<&Path> = place.ancestors().skip(1).take_while(|parent| *parent != tree).collect();
        for parent in parents.into_iter().rev() {
            match fs::symlink_metadata(parent) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(_) => self.move_aside(parent)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(parent)(error)),
            }
            fs::create_dir(parent).map_err(Error::io(parent))?;
            self.made.push(parent.to_owned());
        }
        Ok(())
    }

    /// Gives the worktree back as the worker left it, without protected files that the check wrote.
    pub fn restore(mut self) -> Result<(), Error> {
        let known = |path: &BString| self.files.contains(path) || self.left.contains(path);
        let found = self.guard.find(self.host, self.workspace)?;
        for path in found.iter().filter(|path| !known(path)) {
            remove(&self.place(path))?;
        }
        for place in &self.written {
            remove(place)?;
        }
        for path in &self.left {
            let (place, file) = (self.place(path), self.reference_file(path));
            if !is_same(&file, &place)? {
                remove(&place)?;
                fs::rename(&file, &place).map_err(Error::io(&place))?;
            }
        }
        for folder in self.made.drain(..).rev() {
            // The check may have written other files there.
            let _ = fs::remove_dir(&folder);
        }
        for (place, aside) in self.moved.drain(..).rev() {
            if fs::symlink_metadata(&place).is_ok() {
                remove(&place)?;
            }
            let parent = place.parent().unwrap_or(&place);
            fs::create_dir_all(parent).map_err(Error::io(parent))?;
            fs::rename(&aside, &place).map_err(Error::io(&place))?;
        }
        self.workspace.folder().remove(FOLDER).map_err(Error::io(&self.folder))
    }
}

/// Removes a file, a link, or a folder with everything in it. Succeeds if it does not exist.
pub(super) fn remove(place: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(place) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(Error::io(place))
}

/// Returns true if two files have the same type, content and permission to run.
fn is_same(one: &Path, other: &Path) -> Result<bool, Error> {
    let meta = |path: &Path| match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    };
    let (Some(a), Some(b)) = (meta(one)?, meta(other)?) else { return Ok(false) };
    if a.is_symlink() && b.is_symlink() {
        return Ok(fs::read_link(one).ok() == fs::read_link(other).ok());
    }
    let runs = |meta: &fs::Metadata| meta.permissions().mode() & 0o100 != 0;
    if !a.is_file() || !b.is_file() || a.len() != b.len() || runs(&a) != runs(&b) || b.nlink() != 1 {
        return Ok(false);
    }
    has_same_bytes(one, other).map_err(Error::io(other))
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (fs::File::open(one)?, fs::File::open(other)?);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        io::Read::by_ref(&mut one).take(1 << 20).read_to_end(&mut a)?;
        io::Read::by_ref(&mut other).take(1 << 20).read_to_end(&mut b)?;
        if a != b || a.is_empty() {
            return Ok(a == b);
        }
    }
}

/// Why protected files cannot have their reference state.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("a process of the item may still run")]
    StillRunning,
    #[error("the worker replaced the folder of its attempt")]
    Moved,
    #[error("the worktree has more than {MOST_FILES} files")]
    TooMany,
    #[error("cannot read or write {}", .0.display())]
    Io(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Reference(#[from] protected::Error),
    #[error(transparent)]
    Merge(#[from] merge::Error),
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    #[error(transparent)]
    HeldOut(#[from] held_out::Error),
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io(path, error)
    }
}
