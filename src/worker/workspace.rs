//! The worktree of one attempt.
//!
//! `<root>/<run>/<item>.<attempt>/` holds `tree/` (where the worker runs), `task.json`, `started`
//! once all is in place, and our own copy of the `index` as it was after the checkout, which is for
//! the driver after a crash: a worker can reach it, so as long as this process lives, the copy
//! in memory counts. Nothing here is synced: what a crash leaves behind is thrown away, after
//! [`Workspace::leftovers`] found it.
//!
//! If the workers of attempts are kept apart, a worktree whose attempt ended in order goes into the
//! pool (`pool`), and is restored (`reset`) before another attempt gets it. All others are removed.

pub(super) mod annex;
mod base;
mod cache;
mod error;
mod extras;
mod git_config;
mod git_dir;
mod leftovers;
mod pool;
mod private;
pub(in crate::worker) mod record;
mod refs;
mod remotes;
mod reset;
mod result;
mod scratch;
mod sparse;
mod submodules;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
use reset::Pristine;
pub(super) use submodules::Submodule;
pub use submodules::object_dirs;

use super::folder::{Folder, is_no_folder};
use crate::model::digest::Oid;
use crate::model::name::{ItemId, RunId};
use crate::worker::host::Host;

/// The most that is read of an index that a dead driver left: some two million files.
const MAX_INDEX: u64 = 256 << 20;

/// The file that says that everything was in place, so that something may have run.
const STARTED: &str = "started";

/// The folder of one attempt.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The commit that it was checked out at.
    pub base: Oid,
    /// The attempt's folder, without symbolic links in its path.
    pub dir: PathBuf,
    inputs: PathBuf,
    outputs: PathBuf,
    private: Private,
    /// The run's folder, and the name of the attempt's in it.
    run_folder: Arc<Folder>,
    name: String,
    folder: Arc<Folder>,
    index: Option<Arc<Index>>,
    /// What it was like before anything ran in it; none where that is not known, so that it is used only once.
    pristine: Option<Arc<Pristine>>,
    /// What links in it lead to.
    linked: Vec<PathBuf>,
    /// Whether something may still run in it.
    doubtful: Arc<AtomicBool>,
    /// Whether another attempt may get the folder.
    reusable: bool,
    /// Whether the worker cannot change a file without changing its times.
    times_tell: bool,
}

impl Workspace {
    /// Makes a worktree at `base` with a private git directory; runs no git process unless the repository's filters are one.
    ///
    /// A folder that is there already is refused. A failure leaves nothing.
    pub fn create(host: &Host, run: &RunId, item: &ItemId, attempt: u32, base: Oid) -> Result<Self, Error> {
        let prepared = host.base(base)?;
        let refs = host.refs()?;
        let dir = run_dir(host, run);
        fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, e))?;
        let (dir, run_folder) = open_run(host, run)?.ok_or_else(|| Error::io(&dir, io::ErrorKind::NotFound.into()))?;
        let name = name_of(item, attempt);
        let path = dir.join(&name);
        let spare = host.reuse.then(|| host.pool.take(host, (&prepared, &refs), &run_folder, &name)).flatten();
        if let Some((folder, pristine)) = spare {
            let mut workspace = Self::with(host, run, (item, attempt), base, (path, name), (run_folder, folder));
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
        // In the folder that is open and not by its path, where there may be another by now.
        match run_folder.make(&name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(Error::Exists(path)),
            other => other.map_err(|e| Error::io(&path, e))?,
        }
        let mut workspace = Self::at(host, run, (item, attempt), base, (path, name), run_folder)?;
        if let Err(error) = workspace.fill(host, &prepared, &refs) {
            // The first failure is the one to tell; what could not be removed is found as a leftover.
            let _ = workspace.remove();
            return Err(error);
        }
        Ok(workspace)
    }

    /// Returns the attempt that a dead driver left, to salvage from it or to remove it.
    ///
    /// What is no folder, such as a link in its place, is removed; then, and where it is gone, there is none.
    pub fn reopen(host: &Host, run: &RunId, leftover: Leftover, base: Oid) -> Result<Option<Self>, Error> {
        let Some((_, run_folder)) = open_run(host, run)? else { return Ok(None) };
        let Leftover { item, attempt, dir } = leftover;
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        match Self::at(host, run, (&item, attempt), base, (dir.clone(), name.clone()), run_folder.clone()) {
            Err(Error::Io(_, error)) if is_no_folder(&error) => {
                run_folder.remove(&name).map_err(Error::at(&dir))?;
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn at(
        host: &Host,
        run: &RunId,
        (item, attempt): (&ItemId, u32),
        base: Oid,
        (dir, name): (PathBuf, String),
        run_folder: Arc<Folder>,
    ) -> Result<Self, Error> {
        let folder = Arc::new(run_folder.own_folder(&name).map_err(Error::at(&dir))?);
        Ok(Self::with(host, run, (item, attempt), base, (dir, name), (run_folder, folder)))
    }

    fn with(
        host: &Host,
        run: &RunId,
        (item, attempt): (&ItemId, u32),
        base: Oid,
        (dir, name): (PathBuf, String),
        (run_folder, folder): (Arc<Folder>, Arc<Folder>),
    ) -> Self {
        let tree = dir.join("tree");
        let (inputs, outputs) = (tree.join(&host.inputs), tree.join(&host.outputs));
        let (run, item) = (run.clone(), item.clone());
        let (index, pristine, private) = (None, None, Private::of(host, &dir));
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
        let git_dir = tree.join(".git");
        base.worker.write(&git_dir).map_err(Error::at(&git_dir))?;
        base.worker.link_contents(&git_dir).map_err(Error::at(&git_dir))?;
        refs.write(&git_dir, base.commit).map_err(Error::at(&git_dir))?;
        fs::write(git_dir.join("index"), index.for_worker()).map_err(Error::at(&git_dir))?;
        // After the checkout and before the worker: a file that changes later cannot have an earlier time than this one.
        let path = self.dir.join("index");
        fs::write(&path, &*index.bytes).map_err(Error::at(&path))?;
        let written = fs::metadata(&path).and_then(|meta| meta.modified()).map_err(Error::at(&path))?;
        let index = index.written_at(written);
        // No index tells which files of a submodule changed.
        if self.reusable || !base.submodules().is_empty() {
            let (pristine, index) = Pristine::of(&self.folder, (base, refs), index).map_err(Error::at(&self.dir))?;
            (self.index, self.pristine) = (Some(index), pristine.map(Arc::new));
        } else {
            self.index = Some(Arc::new(index));
        }
        Ok(())
    }

    /// Records what links in the worktree lead to. Workers with such links can meet there, and
    /// copies may be others by now: such a worktree is not used again.
    fn set_linked(&mut self, base: &Base) {
        self.linked = base.extras.linked();
        self.reusable &= base.extras.is_empty();
    }

    /// Notes that everything is in place: from here on something may run in it, and whoever finds it saves its work.
    pub fn mark_started(&self) -> Result<(), Error> {
        let path = self.dir.join(STARTED);
        fs::File::create_new(&path).map(drop).map_err(Error::at(&path))
    }

    /// Returns whether something may have run in it.
    pub fn was_started(&self) -> bool {
        self.folder.file(STARTED).is_ok()
    }

    /// Returns whether the attempt's folder is still where it was made, so that paths lead into it.
    ///
    /// To be asked when the worker's processes are gone, before anything is done by a path: a worker can put a link in its place.
    pub(super) fn is_in_place(&self) -> bool {
        self.folder.is_at(&self.dir)
    }

    /// Returns the attempt's folder itself, wherever a worker may have moved it.
    pub(super) fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// Returns the worktree: the worker's working directory.
    pub fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// Returns the folder that consumed bytes are put into.
    pub fn inputs(&self) -> &Path {
        &self.inputs
    }

    /// Returns the folder that outputs are taken from.
    pub fn outputs(&self) -> &Path {
        &self.outputs
    }

    /// Returns what links in the worktree lead to, that somebody asked for.
    pub fn linked(&self) -> &[PathBuf] {
        &self.linked
    }

    /// Returns the file that tells the worker what to do; its path is also what survivors are recognised by.
    pub fn task(&self) -> PathBuf {
        task_file(&self.dir)
    }

    /// Returns our index as it was after the checkout; none where the checkout was not complete, a worker took it away, or the times in
    /// it tell nothing.
    pub(super) fn index(&self) -> Result<Option<Arc<Index>>, Error> {
        if !self.times_tell {
            return Ok(None);
        }
        if let Some(index) = &self.index {
            return Ok(Some(Arc::clone(index)));
        }
        let read = || {
            let written = self.folder.file("index")?.metadata()?.modified()?;
            Ok(Index::from_bytes(self.folder.read("index", MAX_INDEX)?, written))
        };
        match read() {
            Ok(index) => Ok(Some(Arc::new(index))),
            Err(e) if is_no_folder(&e) || e.kind() == io::ErrorKind::InvalidInput => Ok(None),
            Err(e) => Err(Error::io(&self.dir.join("index"), e)),
        }
    }

    /// Returns what the worktree was like before anything ran in it, if that is known and times
    /// tell of every change.
    pub(in crate::worker) fn recorded(&self) -> Option<&record::Recorded> {
        self.pristine.as_ref().filter(|_| self.times_tell)?.tree()
    }

    /// Removes the attempt's folder with everything in it, whatever modes it has and wherever a worker moved it; links are
    /// removed, never followed.
    ///
    /// A failure leaves a folder that can be removed again later. The run's folder stays, since another attempt may be about to begin
    /// in it; [`Host::leave`] removes that.
    pub fn remove(self) -> Result<(), Error> {
        self.private.remove()?;
        let emptied = if self.is_in_place() { Ok(()) } else { self.folder.empty() };
        emptied.and_then(|()| self.run_folder.remove(&self.name)).map_err(Error::at(&self.dir))
    }
}

/// Returns the path of the task file of an attempt's folder.
pub(super) fn task_file(dir: &Path) -> PathBuf {
    dir.join("task.json")
}

/// Returns the name of an attempt's folder, in that of its run.
fn name_of(item: &ItemId, attempt: u32) -> String {
    format!("{}.{attempt}", item.encoded())
}

fn run_dir(host: &Host, run: &RunId) -> PathBuf {
    host.root.join(run.encoded())
}

/// Opens the folder of a run's attempts; none where there is none. What a worker put in its place is refused.
fn open_run(host: &Host, run: &RunId) -> Result<Option<(PathBuf, Arc<Folder>)>, Error> {
    let root = match fs::canonicalize(&host.root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::at(&host.root))?,
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
