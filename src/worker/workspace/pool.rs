//! Worktrees that are used again.
//!
//! A spent attempt's folder goes into the pool instead of being removed, and is handed out again once it is what it was. Only
//! what this process made, watched over and recorded in its memory is used again: what a worker wrote anywhere decides nothing.
//! The pool's place on the disk is `<root>/@pool/<name>/`, held by a lock as long as this process lives; what has no holder is
//! swept away by whoever comes next.

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
use crate::worker::disk;
use crate::worker::folder::Folder;
use crate::worker::host::Host;

/// The folder of all pools below the host's root; no run is called so.
pub(in crate::worker) const POOL: &str = "@pool";

/// The spent worktrees of one driver; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::worker) struct Pool(Arc<Mutex<Spares>>);

#[derive(Debug, Default)]
struct Spares {
    place: Option<Place>,
    spent: Vec<Spare>,
    /// How many were ever put in, for their names.
    count: u64,
}

/// Where they are.
#[derive(Debug)]
struct Place {
    /// The folder of all pools, and this one's name in it.
    pools: Folder,
    name: String,
    path: PathBuf,
    folder: Folder,
    _lock: File,
}

/// A spent attempt's folder.
#[derive(Debug)]
struct Spare {
    name: String,
    folder: Arc<Folder>,
    pristine: Arc<Pristine>,
}

impl Pool {
    /// Stores a spent folder, or returns it if it cannot be used again.
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
                // Whoever takes it is to be the only one who has it.
                drop(workspace);
                inner.spent.push(Spare { name, folder, pristine });
                Ok(())
            }
            Err(_) => Err(workspace),
        }
    }

    /// Takes out a folder that was a checkout of just this base, and makes it what it was, with
    /// these refs. One that cannot be is removed.
    pub(super) fn take(
        &self,
        host: &Host,
        (base, refs): (&Arc<Base>, &Refs),
        to: &Folder,
        name: &str,
    ) -> Option<(Arc<Folder>, Arc<Pristine>)> {
        loop {
            let (spare, path, from) = {
                let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let is_wanted = |spare: &Spare| Arc::ptr_eq(&spare.pristine.base, base);
                let at = inner.spent.iter().rposition(is_wanted)?;
                let spare = inner.spent.remove(at);
                let place = inner.place.as_ref()?;
                (spare, place.path.clone(), place.folder.again().ok()?)
            };
            let path = path.join(&spare.name);
            let Spare { name: old, folder, pristine, .. } = spare;
            let restored = Arc::into_inner(pristine).and_then(|mut pristine| {
                pristine.restore(host, &folder, &path, refs).ok()?;
                from.move_to(&old, to, name).ok()?;
                Some(Arc::new(pristine))
            });
            match restored {
                Some(pristine) => return Some((folder, pristine)),
                // What cannot be removed now goes with the pool, or stays for `clean` to tell of.
                None => drop(folder.empty().and_then(|()| from.remove(&old))),
            }
        }
    }

    /// Removes the folder that has waited longest; returns false where there is none.
    fn drop_oldest(&self) -> io::Result<bool> {
        let (name, from) = {
            let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(place) = inner.place.as_ref().filter(|_| !inner.spent.is_empty()) else { return Ok(false) };
            let from = place.folder.again()?;
            (inner.spent.remove(0).name, from)
        };
        from.remove(&name).map(|()| true)
    }

    /// Removes all that is in it, and its place; it can be used again afterwards.
    pub(in crate::worker) fn clear(&self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear()
    }
}

/// A pool on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPlace {
    /// Its folder.
    pub path: PathBuf,
    /// Whether the driver that it belongs to lives.
    pub held: bool,
}

/// Lists the pools below a host's root, in no order.
pub fn pools(root: &Path) -> io::Result<Vec<PoolPlace>> {
    let entries = match std::fs::read_dir(root.join(POOL)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A lock that we get is let go at once.
        let held = File::open(&path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        found.push(PoolPlace { path, held });
    }
    Ok(found)
}

impl Spares {
    fn clear(&mut self) -> io::Result<()> {
        self.spent.clear();
        let Some(place) = self.place.take() else { return Ok(()) };
        place.pools.remove(&place.name)?;
        if let Some(pools) = place.path.parent() {
            // Fails as long as other drivers have theirs.
            let _ = std::fs::remove_dir(pools);
        }
        Ok(())
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        // What cannot be removed has no holder any more, and is swept away some other time.
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

/// Removes the pools that nobody holds any more.
pub fn sweep(root: &Path) -> io::Result<()> {
    let pools = match Folder::open(root).and_then(|root| root.own_folder(POOL)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in pools.entries()?.collect::<Vec<_>>() {
        let (name, _) = entry?;
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        // Held until it is gone, so that nobody begins to use it meanwhile.
        let lock = File::open(root.join(POOL).join(name));
        if lock.is_ok_and(|file| file.try_lock().is_ok()) {
            pools.remove(name)?;
        }
    }
    Ok(())
}

impl Workspace {
    /// Notes that something of the worker may still run, so that nobody else is ever given this folder.
    pub fn doubt(&self) {
        self.doubtful.store(true, Ordering::Relaxed);
    }

    /// Returns whether something of the worker may still run.
    pub(in crate::worker) fn is_in_doubt(&self) -> bool {
        self.doubtful.load(Ordering::Relaxed)
    }

    /// Notes that the worker may make calls that change a file and none of its times: every file is looked at when its work is taken,
    /// and nobody else is ever given this folder.
    pub fn distrust_times(&mut self) {
        self.times_tell = false;
    }

    /// Gives the folder to the pool, or returns the workspace if it has to be removed.
    ///
    /// To be called when the worker's processes are gone and its work is recorded. A folder is used
    /// again only if the [`Host`] allows it, its processes are known to be gone, and times tell
    /// which files changed. The run's folder stays until [`Host::leave`].
    pub fn recycle(self, host: &Host) -> Result<(), Box<Self>> {
        let is_known = self.reusable && self.times_tell && !self.is_in_doubt();
        if !is_known || self.private.remove().is_err() {
            return Err(Box::new(self));
        }
        host.pool.put(&host.root, Box::new(self))
    }
}

impl Folder {
    /// Moves an entry of this folder to another folder, where nothing may have its name.
    fn move_to(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(self.as_fd(), name, to.as_fd(), new, RenameFlags::NOREPLACE)?)
    }
}

impl Host {
    /// Removes spent worktrees, the oldest first, until no more is taken below the root than the cap allows; returns how much is
    /// taken if it is still more. Nothing else is ever removed for room.
    ///
    /// To be called now and then: it looks at every file.
    pub fn bound(&self) -> Result<Option<u64>, Error> {
        loop {
            let used = disk::size(&self.root, 0);
            if used <= self.cap {
                return Ok(None);
            }
            if !self.pool.drop_oldest().map_err(|e| Error::Io(self.root.join(POOL), e))? {
                return Ok(Some(used));
            }
        }
    }

    /// Removes what was kept while a run was held: the worktrees that are used again, and the run's folder if nothing is in it.
    pub fn leave(&self, run: &RunId) -> Result<(), Error> {
        self.clear_pool()?;
        // Fails as long as attempts of the run are there.
        let _ = std::fs::remove_dir(self.root.join(run.encoded()));
        Ok(())
    }

    /// Removes the worktrees that are kept to be used again.
    pub fn clear_pool(&self) -> Result<(), Error> {
        self.pool.clear().map_err(|e| Error::Io(self.root.join(POOL), e))
    }
}
