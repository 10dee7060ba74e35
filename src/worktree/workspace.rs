//! Creates, restores and removes the worktree of one attempt.
//!
//! `<root>/<run>/<item>.<attempt>/` contains `tree/` (the worktree), `task.json`, and `started`
//! once everything is in place. The index from checkout is only in memory, where no worker can
//! change it; without it every file is read. Nothing here is synced: after a crash,
//! [`Workspace::leftovers`] finds the folder and it is removed.
//!
//! If attempts' workers are kept apart, a worktree whose attempt ended normally goes into the pool
//! (`pool`) and is restored (`reset`) for another attempt. All others are removed.

mod agent_copy;
mod agent_folders;
pub(crate) mod annex;
mod base;
mod cache;
mod error;
mod extras;
mod for_check;
mod git_config;
mod git_dir;
mod leftovers;
mod logins;
mod pool;
mod private;
pub(crate) mod record;
mod refs;
mod remotes;
mod reset;
mod result;
mod scratch;
mod sparse;
mod submodules;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

pub use agent_folders::AgentFolders;
pub(super) use base::{Base, Index};
pub use error::Error;
pub(super) use git_dir::GitDir;
pub use leftovers::{Leftover, UNSAVED};
pub(super) use pool::Pool;
pub use pool::{PoolPlace, pools, sweep};
use private::Private;
pub(super) use private::make_home;
pub use refs::Refs;
pub use remotes::remotes_here;
use reset::{Pristine, STAMP, write_git};
pub(super) use submodules::Submodule;
pub use submodules::object_dirs;

use gix::bstr::BString;

use crate::git::protected;
use crate::model::digest::Oid;
use crate::model::name::{ItemId, RunId};
use crate::process::survivors;
use crate::sandbox::folder::{Folder, is_no_folder};
use crate::worktree::host::Host;

/// The file that marks a complete worktree, in which something may have run.
const STARTED: &str = "started";

/// The attempt that a worktree is for.
struct Attempt<'a> {
    run: &'a RunId,
    item: &'a ItemId,
    number: u32,
    base: Oid,
}

/// The place of an attempt's folder.
struct Place {
    dir: PathBuf,
    name: String,
    run_folder: Arc<Folder>,
}

/// The folder of one attempt.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The checked-out commit.
    pub base: Oid,
    /// The attempt's folder, with symbolic links resolved.
    pub dir: PathBuf,
    inputs: PathBuf,
    outputs: PathBuf,
    private: Private,
    /// The run's folder, and the name of the attempt's folder in it.
    run_folder: Arc<Folder>,
    name: String,
    folder: Arc<Folder>,
    index: Option<Arc<Index>>,
    /// Its recorded initial state, or `None` if unknown, so that it is used only once.
    pristine: Option<Arc<Pristine>>,
    /// The targets of links in it.
    linked: Vec<PathBuf>,
    /// True if a process may still run in it.
    doubtful: Arc<AtomicBool>,
    /// True if another attempt may get the folder.
    reusable: bool,
    /// True if the worker cannot change a file without changing its times.
    times_tell: bool,
    /// Its private copies of agents' folders.
    agent: Arc<OnceLock<AgentFolders>>,
    /// True if only a check runs in it.
    is_for_check: bool,
}

impl Workspace {
    /// Creates a worktree at `base` with a private git directory. Runs no git process except the
    /// repository's filters.
    ///
    /// Fails if the folder exists. A failure leaves nothing.
    pub fn create(host: &Host, run: &RunId, item: &ItemId, attempt: u32, base: Oid) -> Result<Self, Error> {
        let prepared = host.base(base)?;
        let refs = host.refs()?;
        let dir = run_dir(host, run);
        fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
        let (dir, run_folder) = open_run(host, run)?.ok_or_else(|| Error::io(&dir, io::ErrorKind::NotFound.into()))?;
        let of = Attempt { run, item, number: attempt, base };
        let name = name_of(item, attempt);
        let path = dir.join(&name);
        let reused = host.reuse.then(|| host.pool.take(host, &prepared, &refs, &run_folder, &name)).flatten();
        if let Some((folder, pristine)) = reused {
            let mut workspace = Self::with(host, &of, Place { dir: path, name, run_folder }, folder);
            workspace.index = Some(Arc::clone(pristine.index()));
            workspace.pristine = Some(pristine);
            workspace.set_linked(&prepared);
            return match workspace.private.make() {
                Ok(()) => Ok(workspace),
                Err(error) => {
                    let _ = workspace.remove();
                    Err(error)
                }
            };
        }
        // Use the open folder: its path may lead to another one by now.
        match run_folder.make(&name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Exists(path)),
            other => other.map_err(|e| Error::io(&path, e))?,
        }
        let mut workspace = Self::at(host, &of, Place { dir: path, name, run_folder })?;
        if let Err(error) = workspace.fill(host, &prepared, &refs) {
            // Report the first failure. Remains are found as a leftover.
            let _ = workspace.remove();
            return Err(error);
        }
        Ok(workspace)
    }

    /// Opens an attempt that a dead driver left, to salvage or remove it.
    ///
    /// Removes something that is not a folder, such as a link, and returns `None` for it and for a
    /// missing folder.
    pub fn reopen(host: &Host, run: &RunId, leftover: Leftover, base: Oid) -> Result<Option<Self>, Error> {
        let Some((_, run_folder)) = open_run(host, run)? else { return Ok(None) };
        let Leftover { item, attempt, dir } = leftover;
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let of = Attempt { run, item: &item, number: attempt, base };
        let place = Place { dir: dir.clone(), name: name.clone(), run_folder: run_folder.clone() };
        match Self::at(host, &of, place) {
            Err(Error::Io(_, error)) if is_no_folder(&error) => {
                run_folder.remove(&name).map_err(Error::at(&dir))?;
                Ok(None)
            }
            Ok(found) => {
                // Its driver may have died during a check.
                found.end_check(host)?;
                Ok(Some(found))
            }
            Err(error) => Err(error),
        }
    }

    fn at(host: &Host, of: &Attempt<'_>, place: Place) -> Result<Self, Error> {
        let folder = Arc::new(place.run_folder.own_folder(&place.name).map_err(Error::at(&place.dir))?);
        Ok(Self::with(host, of, place, folder))
    }

    fn with(host: &Host, of: &Attempt<'_>, place: Place, folder: Arc<Folder>) -> Self {
        let Attempt { run, item, number: attempt, base } = *of;
        let Place { dir, name, run_folder } = place;
        let tree = dir.join("tree");
        let (inputs, outputs) = (tree.join(&host.settings.inputs), tree.join(&host.settings.outputs));
        let (run, item) = (run.clone(), item.clone());
        let (index, pristine, private) = (None, None, Private::new(host, &dir));
        Self {
            run,
            item,
            attempt,
            base,
            dir,
            inputs,
            outputs,
            private,
            run_folder,
            name,
            folder,
            index,
            pristine,
            linked: Vec::new(),
            doubtful: Arc::default(),
            reusable: host.reuse,
            times_tell: true,
            agent: Arc::default(),
            is_for_check: false,
        }
    }

    fn fill(&mut self, host: &Host, base: &Arc<Base>, refs: &Refs) -> Result<(), Error> {
        let tree = self.tree();
        fs::create_dir(&tree).map_err(Error::at(&tree))?;
        let index = base.checkout(host, &tree)?;
        base.extras.put(&tree)?;
        self.set_linked(base);
        for dir in [&self.inputs, &self.outputs] {
            fs::create_dir_all(dir).map_err(Error::at(dir))?;
        }
        self.private.make()?;
        // Written between checkout and worker: later changes have later times.
        write_git(base, refs, &index, &self.dir)?;
        let path = self.dir.join(OsStr::from_bytes(STAMP.to_bytes()));
        fs::File::create_new(&path).map_err(Error::at(&path))?;
        let written = fs::metadata(&path).and_then(|meta| meta.modified()).map_err(Error::at(&path))?;
        let index = Index { written, ..index };
        if self.reusable {
            let (pristine, index) = Pristine::record(&self.folder, base, index).map_err(Error::at(&self.dir))?;
            (self.index, self.pristine) = (Some(index), pristine.map(Arc::new));
        } else {
            self.index = Some(Arc::new(index));
        }
        Ok(())
    }

    /// Records the targets of links in the worktree. Workers can meet through them, and copies may
    /// be outdated later, so such a worktree is not reused.
    fn set_linked(&mut self, base: &Base) {
        self.linked = base.extras.linked();
        self.reusable &= base.extras.is_empty();
    }

    /// Marks the worktree as complete: something may run in it, and its work is salvaged.
    pub fn mark_started(&self) -> Result<(), Error> {
        let path = self.dir.join(STARTED);
        fs::File::create_new(&path).map(drop).map_err(Error::at(&path))
    }

    /// Returns true if something may have run in it.
    pub fn was_started(&self) -> bool {
        self.folder.file(STARTED).is_ok()
    }

    /// Returns true if the attempt's folder is still at its path.
    ///
    /// Check this after the worker's processes ended and before using a path: a worker can replace
    /// the folder with a link.
    pub(super) fn is_in_place(&self) -> bool {
        self.folder.is_at(&self.dir)
    }

    /// Returns the attempt's folder, even if a worker moved it.
    pub(super) fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// Returns the worktree: the worker's working directory.
    pub fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// Returns the folder for consumed products.
    pub fn inputs(&self) -> &Path {
        &self.inputs
    }

    /// Returns the folder for outputs.
    pub fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// Returns the targets of configured links in the worktree.
    pub fn linked(&self) -> &[PathBuf] {
        &self.linked
    }

    /// Returns the worker's task file; its path also identifies survivors.
    pub fn task(&self) -> PathBuf {
        survivors::task_file(&self.dir)
    }

    /// Returns our index from checkout, or `None` if a dead driver made the worktree, or its times
    /// mean nothing.
    pub(super) fn index(&self) -> Option<&Index> {
        self.index.as_deref().filter(|_| self.times_tell)
    }

    /// Returns the paths that are no part of the work: submodules, and files that every worktree
    /// gets.
    pub(crate) fn apart_from_work(&self, host: &Host) -> Result<BTreeSet<BString>, Error> {
        let base = host.base(self.base)?;
        Ok(base.gitlinks.iter().cloned().chain(base.extras.paths().map(ToOwned::to_owned)).collect())
    }

    /// Returns true if held-out files may be in the worktree, because a check did not end normally.
    pub(super) fn may_hold_out(&self) -> bool {
        let folder = self.folder.folder("protect/aside");
        folder.is_ok_and(|folder| folder.has("held-out"))
    }

    /// Checks out files of the base, and others by their blobs, into an empty folder. Returns the
    /// paths that were written.
    pub(crate) fn write_files<'f>(
        &self,
        host: &Host,
        dir: &Path,
        files: impl Iterator<Item = (&'f BString, &'f protected::Entry)>,
    ) -> Result<BTreeSet<BString>, Error> {
        host.base(self.base)?.write_files(host, dir, files)
    }

    /// Removes the attempt's folder with everything in it, whatever its modes and wherever a worker
    /// moved it. Removes links but never follows them.
    ///
    /// A failure leaves a folder that can be removed later. The run's folder stays for other
    /// attempts; [`Host::leave`] removes it.
    pub fn remove(self) -> Result<(), Error> {
        self.private.remove()?;
        let emptied = if self.is_in_place() { Ok(()) } else { self.folder.empty() };
        emptied.and_then(|()| self.run_folder.remove(&self.name)).map_err(Error::at(&self.dir))
    }
}

/// Returns the name of an attempt's folder in the run's folder.
fn name_of(item: &ItemId, attempt: u32) -> String {
    format!("{}.{attempt}", item.encoded())
}

fn run_dir(host: &Host, run: &RunId) -> PathBuf {
    host.settings.root.join(run.encoded())
}

/// Opens the folder of a run's attempts, or returns `None` if it does not exist. Fails if a worker
/// replaced it.
fn open_run(host: &Host, run: &RunId) -> Result<Option<(PathBuf, Arc<Folder>)>, Error> {
    let root = match fs::canonicalize(&host.settings.root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::at(&host.settings.root))?,
    };
    let dir = root.join(run.encoded());
    let opened = Folder::open(&root).and_then(|root| root.own_folder(&run.encoded()));
    match opened {
        Ok(folder) => Ok(Some((dir, Arc::new(folder)))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if is_no_folder(&e) => Err(Error::Replaced(dir)),
        Err(e) => Err(Error::io(&dir, e)),
    }
}
