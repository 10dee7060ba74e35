//! Prepares a commit for checkout by many attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use gix::bstr::{BStr, BString};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::worktree::stack::state::attributes::Source;
use gix::worktree::state::checkout;

use super::extras::Extras;
use super::git_dir::GitDir;
use super::submodules::Submodule;
use super::{Error, sparse, submodules};
use crate::git::history::is_partial;
use crate::git::protected;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::worktree::host::Host;

/// Fewer files are written sooner by one thread than several threads start.
const FEW_FILES: usize = 200;

/// A prepared commit.
pub(crate) struct Base {
    /// The commit's tree.
    pub(crate) tree: Oid,
    /// The commit itself.
    pub(super) commit: Oid,
    /// A worker's private git directory, without refs.
    pub(super) worker: GitDir,
    /// The git directory for captures.
    pub(crate) capture: Arc<GitDir>,
    /// Additional files of a worktree.
    pub(crate) extras: Extras,
    /// The paths of submodules.
    pub(crate) gitlinks: Vec<BString>,
    submodules: Vec<Submodule>,
    files: Checkout,
}

/// A commit's files, ready to be written.
pub(super) struct Checkout {
    /// Their tree.
    pub(super) tree: Oid,
    pub(super) index: Arc<gix::index::State>,
    /// The objects and the options, open as long as attempts need them.
    open: Mutex<(gix::OdbHandleArc, checkout::Options)>,
}

impl Checkout {
    /// Reads a commit; `lfs` is true if the filter of that name runs.
    pub(super) fn read(store: &Store, commit: Oid, lfs: bool) -> Result<Self, Error> {
        let repo = store.unbounded().map_err(|e| Error::Base(commit, Box::new(e)))?;
        let tree = repo
            .find_commit(commit.0)
            .and_then(|commit| commit.tree_id())
            .map_err(|e| Error::Base(commit, Box::new(e)))?
            .detach();
        let index = repo.index_from_tree(&tree);
        if index.is_err() && is_partial(store) {
            return Err(Error::Partial(format!("a folder of {commit}")));
        }
        let (index, _) = index.map_err(|e| Error::Base(commit, Box::new(e)))?.into_parts();
        let mut options = repo.checkout_options(Source::IdMapping).map_err(|e| Error::Base(commit, Box::new(e)))?;
        options.destination_is_initially_empty = true;
        if index.entries().len() < FEW_FILES {
            options.thread_limit.get_or_insert(1);
        }
        options.filters.driver_context_mut().treeish = Some(commit.0);
        let drivers = &mut options.filters.options_mut().drivers;
        drivers.retain(|driver| lfs || driver.name != "lfs");
        for driver in drivers {
            // git runs no empty command, and an empty `process` disables all commands.
            let is_off = driver.process.as_ref().is_some_and(|command| command.is_empty());
            for command in [&mut driver.clean, &mut driver.smudge, &mut driver.process] {
                command.take_if(|command| is_off || command.is_empty());
            }
        }
        let objects = repo.objects.clone().into_arc().map_err(|e| Error::Checkout(Box::new(e)))?;
        Ok(Self { tree: Oid(tree), index: Arc::new(index), open: Mutex::new((objects, options)) })
    }

    /// Writes the files of an index, except marked ones, and records their status.
    pub(super) fn write(&self, store: &Store, dir: &Path, index: &mut gix::index::State) -> Result<(), Error> {
        let (objects, options) = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (files, bytes) = (gix::progress::Discard, gix::progress::Discard);
        let never = AtomicBool::new(false);
        let outcome = checkout(index, dir, objects, &files, &bytes, &never, options);
        let outcome = outcome.map_err(|error| lacking(store, index).unwrap_or(Error::Checkout(Box::new(error))))?;
        match outcome.collisions.first() {
            Some(collision) => Err(Error::Collision(collision.path.to_string())),
            None => Ok(()),
        }
    }
}

/// Returns the error for objects that a partial clone lacks.
fn lacking(store: &Store, index: &gix::index::State) -> Option<Error> {
    let found = is_partial(store)
        .then(|| {
            index.entries().iter().find(|entry| {
                entry.mode != Mode::COMMIT
                    && !entry.flags.contains(Flags::SKIP_WORKTREE)
                    && !store.contains(Oid(entry.id))
            })
        })
        .flatten();
    found.map(|entry| Error::Partial(entry.path(index).to_string()))
}

impl Base {
    /// Reads a commit. Refuses one that tracks our folders in worktrees.
    pub(crate) fn read(host: &Host, commit: Oid) -> Result<Self, Error> {
        let mut files = Checkout::read(&host.store, commit, host.settings.lfs)?;
        let index = Arc::make_mut(&mut files.index);
        for reserved in [&host.settings.inputs, &host.settings.outputs] {
            let tracked =
                |path: &[u8]| path.strip_prefix(reserved.as_bytes()).is_some_and(|r| matches!(r, [] | [b'/', ..]));
            if index.entries().iter().any(|entry| tracked(entry.path(index))) {
                return Err(Error::Reserved(commit, reserved.clone()));
            }
        }
        let sparse = sparse::apply(host, index)?;
        let extras = Extras::read(host)?.without_tracked(index)?;
        let gitlinks = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        let gitlinks: Vec<(BString, Oid)> =
            gitlinks.map(|entry| (entry.path(index).to_owned(), Oid(entry.id))).collect();
        Ok(Self {
            tree: files.tree,
            commit,
            worker: GitDir::for_worker(host, &extras, sparse)?,
            capture: Arc::new(GitDir::for_capture(host, commit, &extras)?),
            extras,
            submodules: Submodule::find(host, commit, &gitlinks)?,
            gitlinks: gitlinks.into_iter().map(|(path, _)| path).collect(),
            files,
        })
    }

    /// Returns the submodules to check out; the others have no files.
    pub(crate) fn submodules(&self) -> &[Submodule] {
        &self.submodules
    }

    /// Returns the paths of submodules that are not checked out.
    pub(super) fn empty_submodules(&self) -> impl Iterator<Item = BString> {
        let empty = self
            .gitlinks
            .iter()
            .filter(move |path| !self.submodules.iter().any(|submodule| submodule.path == **path))
            .cloned();
        empty.chain(self.submodules.iter().flat_map(Submodule::nested))
    }

    /// Checks the commit out into the empty folder `dir` with the repository's filters and the
    /// commit's attributes.
    pub(super) fn checkout(&self, host: &Host, dir: &Path) -> Result<Index, Error> {
        let mut index = gix::index::State::clone(&self.files.index);
        self.files.write(&host.store, dir, &mut index)?;
        let submodules = self.submodules.iter().map(|submodule| submodule.put(dir).map(Arc::new));
        let submodules = submodules.collect::<Result<_, _>>()?;
        self.empty_submodules().try_for_each(|path| submodules::put_empty(host, dir, &path))?;
        Ok(Index { state: Arc::new(index), submodules, written: SystemTime::UNIX_EPOCH })
    }

    /// Checks missing files out again and returns the complete index.
    pub(super) fn checkout_again(
        &self,
        host: &Host,
        dir: &Path,
        before: &Index,
        paths: &BTreeSet<BString>,
    ) -> Result<Index, Error> {
        let mut index = gix::index::State::clone(&before.state);
        // Attribute lookup sees all entries; only unmarked ones are written.
        let mut part = index.clone();
        let selected: Vec<bool> =
            (0..index.entries().len()).map(|at| paths.contains(index.entries()[at].path(&index))).collect();
        if selected.iter().filter(|selected| **selected).count() != paths.len() {
            return Err(Error::io(dir, std::io::ErrorKind::NotFound.into()));
        }
        for (entry, is_selected) in part.entries_mut().iter_mut().zip(&selected) {
            entry.flags.set(Flags::SKIP_WORKTREE, !is_selected);
        }
        self.files.write(&host.store, dir, &mut part)?;
        for ((entry, new), _) in index.entries_mut().iter_mut().zip(part.entries()).zip(&selected).filter(|(_, w)| **w)
        {
            entry.stat = new.stat;
        }
        Ok(Index { state: Arc::new(index), ..before.clone() })
    }

    /// Checks files out into the empty folder `dir`: those of the commit, and others by their
    /// blobs. Skips files that a sparse checkout excludes. Returns the paths that were written.
    pub(super) fn write_files<'f>(
        &self,
        host: &Host,
        dir: &Path,
        files: impl Iterator<Item = (&'f BString, &'f protected::Entry)>,
    ) -> Result<BTreeSet<BString>, Error> {
        let mut index = gix::index::State::clone(&self.files.index);
        let mut targets: BTreeMap<BString, protected::Entry> =
            files.map(|(path, entry)| (path.clone(), *entry)).collect();
        targets.retain(|path, _| {
            !index.entry_by_path(path.as_ref()).is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE))
        });
        let is_changed = |path: &BStr, entry: &gix::index::Entry| {
            targets.get(path).is_some_and(|new| Oid(entry.id) != new.oid || entry.mode.bits() != new.mode)
        };
        index.remove_entries(|_, path, entry| is_changed(path, entry));
        for entry in index.entries_mut() {
            entry.flags |= Flags::SKIP_WORKTREE;
        }
        for (path, new) in &targets {
            if let Some(entry) = index.entry_mut_by_path_and_stage(path.as_ref(), Stage::Unconflicted) {
                entry.flags.remove(Flags::SKIP_WORKTREE);
            } else {
                let mode = Mode::from_bits_truncate(new.mode);
                index.dangerously_push_entry(Stat::default(), new.oid.0, Flags::empty(), mode, path.as_ref());
            }
        }
        index.sort_entries();
        self.files.write(&host.store, dir, &mut index)?;
        Ok(targets.into_keys().collect())
    }

    /// Returns the index of the commit, without file status.
    pub(crate) fn index(&self) -> &Arc<gix::index::State> {
        &self.files.index
    }
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Base").field("tree", &self.tree).finish_non_exhaustive()
    }
}

/// Our index from checkout.
#[derive(Clone)]
pub(crate) struct Index {
    /// The files with their status.
    pub(crate) state: Arc<gix::index::State>,
    /// The indices of the base's submodules.
    pub(crate) submodules: Vec<Arc<gix::index::State>>,
    /// The time of checkout by the file system's clock: later changes have later times.
    pub(crate) written: SystemTime,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("written", &self.written).finish_non_exhaustive()
    }
}

pub(super) fn bytes_of(index: &gix::index::State) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = gix::index::File::from_state(index.clone(), "index");
    file.write_to(&mut bytes, gix::index::write::Options::default()).map_err(|e| Error::Checkout(Box::new(e)))?;
    Ok(bytes)
}
