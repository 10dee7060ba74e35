//! Keeps finished worktrees for reuse.
//!
//! A finished attempt's folder goes into the pool instead of being removed, and is restored for the
//! next attempt. Only folders that this process created, supervised and recorded in memory are
//! reused: a worker's files decide nothing. The pool is in `<root>/@pool/<name>/`, locked while
//! this process lives; the next driver removes pools without a lock.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::RenameFlags;

use super::reset::Pristine;
use super::{Base, Error, Refs, Workspace};
use crate::model::name::RunId;
use crate::process::disk;
use crate::sandbox::folder::Folder;
use crate::worktree::host::Host;

/// The folder of all pools below the host's root; no run has this name.
pub(crate) const POOL: &str = "@pool";

/// The finished worktrees of one driver. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Arc<Mutex<Spares>>);

#[derive(Debug, Default)]
struct Spares {
    place: Option<Place>,
    spent: Vec<Spare>,
    /// The number of folders ever added, for their names.
    count: u64,
}

/// The pool's folder.
#[derive(Debug)]
struct Place {
    /// The folder of all pools, and the pool's name in it.
    pools: Folder,
    name: String,
    path: PathBuf,
    folder: Folder,
    _lock: File,
}

/// A finished attempt's folder.
#[derive(Debug)]
struct Spare {
    name: String,
    folder: Arc<Folder>,
    pristine: Arc<Pristine>,
}

impl Pool {
    /// Adds a finished folder, or returns it if it cannot be reused.
    fn put(&self, root: &Path, workspace: Box<Workspace>) -> Result<(), Box<Workspace>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pristine) = workspace.pristine.clone().filter(|_| workspace.is_in_place()) else {
            return Err(workspace);
        };
        if inner.place.is_none() {
            inner.place = Place::make(root).ok();
        }
        let name = inner.count.to_string();
        inner.count += 1;
        let Some(place) = &inner.place else { return Err(workspace) };
        match workspace.run_folder.move_to(&workspace.name, &place.folder, &name) {
            Ok(()) => {
                let folder = Arc::clone(&workspace.folder);
                // The next user must be the only one.
                drop(workspace);
                inner.spent.push(Spare { name, folder, pristine });
                Ok(())
            }
            Err(_) => Err(workspace),
        }
    }

    /// Removes a folder with this base from the pool and restores it with these refs. Deletes a
    /// folder that cannot be restored.
    pub(super) fn take(
        &self,
        host: &Host,
        base: &Arc<Base>,
        refs: &Refs,
        to: &Folder,
        name: &str,
    ) -> Option<(Arc<Folder>, Arc<Pristine>)> {
        loop {
            let (entry, path, from) = {
                let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let at = inner.spent.iter().rposition(|entry| Arc::ptr_eq(&entry.pristine.base, base))?;
                let entry = inner.spent.remove(at);
                let place = inner.place.as_ref()?;
                (entry, place.path.clone(), place.folder.again().ok()?)
            };
            let path = path.join(&entry.name);
            let Spare { name: old, folder, pristine, .. } = entry;
            let restored = Arc::into_inner(pristine).and_then(|mut pristine| {
                pristine.restore(host, &folder, &path, refs).ok()?;
                from.move_to(&old, to, name).ok()?;
                Some(Arc::new(pristine))
            });
            match restored {
                Some(prepared) => return Some((folder, prepared)),
                // Remains are removed with the pool, or `clean` reports them.
                None => drop(folder.empty().and_then(|()| from.remove(&old))),
            }
        }
    }

    /// Deletes the oldest folder. Returns false if there is none.
    fn drop_oldest(&self) -> io::Result<bool> {
        let (name, from) = {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(place) = inner.place.as_ref().filter(|_| !inner.spent.is_empty()) else { return Ok(false) };
            let from = place.folder.again()?;
            (inner.spent.remove(0).name, from)
        };
        from.remove(&name).map(|()| true)
    }

    /// Deletes all folders and the pool's folder. The pool can be used again.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear()
    }
}

/// A pool on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlace {
    /// Its folder.
    pub path: PathBuf,
    /// True if its driver lives.
    pub is_locked: bool,
}

/// Lists the pools below a host's root, unordered.
pub fn pools(root: &Path) -> io::Result<Vec<PoolPlace>> {
    let entries = match std::fs::read_dir(root.join(POOL)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A lock that we get is released at once.
        let is_locked = File::open(&path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        found.push(PoolPlace { path, is_locked });
    }
    Ok(found)
}

impl Spares {
    fn clear(&mut self) -> io::Result<()> {
        self.spent.clear();
        let Some(place) = self.place.take() else { return Ok(()) };
        place.pools.remove(&place.name)?;
        if let Some(pools) = place.path.parent() {
            // Fails while other drivers have pools.
            let _ = std::fs::remove_dir(pools);
        }
        Ok(())
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        // Remains have no lock and are removed later.
        let _ = self.clear();
    }
}

impl Place {
    fn make(root: &Path) -> io::Result<Self> {
        let root = std::fs::canonicalize(root)?;
        let dir = root.join(POOL);
        std::fs::create_dir_all(&dir)?;
        let pools = Folder::open(&root)?.own_folder(POOL)?;
        let path = tempfile::Builder::new().prefix("").tempdir_in(&dir)?.keep();
        let name = path.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidData)?.to_owned();
        let lock = File::open(&path)?;
        lock.try_lock().map_err(|_| io::ErrorKind::WouldBlock)?;
        let folder = pools.own_folder(&name)?;
        Ok(Self { pools, name, path, folder, _lock: lock })
    }
}

/// Removes the pools without a driver.
pub fn sweep(root: &Path) -> io::Result<()> {
    let pools = match Folder::open(root).and_then(|root| root.own_folder(POOL)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in pools.entries()?.collect::<Vec<_>>() {
        let (name, _) = entry?;
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        // Held until it is removed, so that no process starts to use it.
        let lock = File::open(root.join(POOL).join(name));
        if lock.is_ok_and(|file| file.try_lock().is_ok()) {
            pools.remove(name)?;
        }
    }
    Ok(())
}

impl Workspace {
    /// Records that a process of the worker may still run, so that the folder is never reused.
    pub fn doubt(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// Returns true if a process of the worker may still run.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }

    /// Records that the worker may change files without changing their times: the capture compares
    /// every file, and the folder is never reused.
    pub fn distrust_times(&mut self) {
        self.times_tell = false;
    }

    /// Adds the folder to the pool, or returns the workspace for removal.
    ///
    /// Call this after the worker's processes ended and its work is recorded. The folder is reused
    /// only if the [`Host`] permits it, its processes have certainly ended, and times show which
    /// files changed. The run's folder stays until [`Host::leave`].
    pub fn recycle(self, host: &Host) -> Result<(), Box<Self>> {
        let is_known = self.reusable && self.times_tell && !self.is_in_doubt();
        if !is_known || self.private.remove().is_err() {
            return Err(Box::new(self));
        }
        host.pool.put(&host.settings.root, Box::new(self))
    }
}

impl Folder {
    /// Moves an entry to an unused name in another folder.
    fn move_to(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(self.as_fd(), name, to.as_fd(), new, RenameFlags::NOREPLACE)?)
    }
}

impl Host {
    /// Deletes finished worktrees, oldest first, until the root's size is within the cap. Returns
    /// the size if it still exceeds the cap. Deletes nothing else.
    ///
    /// Call this occasionally: it reads every folder.
    pub fn bound(&self) -> Result<Option<u64>, Error> {
        loop {
            let used = disk::size(&self.settings.root, 0);
            if used <= self.cap {
                return Ok(None);
            }
            if !self.pool.drop_oldest().map_err(|e| Error::Io(self.settings.root.join(POOL), e))? {
                return Ok(Some(used));
            }
        }
    }

    /// Deletes the pool and, if it is empty, the run's folder, when a run is left.
    pub fn leave(&self, run: &RunId) -> Result<(), Error> {
        self.clear_pool()?;
        // Fails while attempts of the run exist.
        let _ = std::fs::remove_dir(self.settings.root.join(run.encoded()));
        Ok(())
    }

    /// Removes the data of agents' sessions, when no item of a run gets another attempt.
    pub fn forget_sessions(&self, run: &RunId) -> Result<(), Error> {
        super::agent_folders::forget_sessions(self, run)
    }

    /// Deletes the worktrees kept for reuse.
    pub fn clear_pool(&self) -> Result<(), Error> {
        self.pool.clear().map_err(|e| Error::Io(self.settings.root.join(POOL), e))
    }
}
