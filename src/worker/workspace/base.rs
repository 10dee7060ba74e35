//! What every attempt at one commit starts from.

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::entry::{Flags, Mode};
use gix::worktree::stack::state::attributes::Source;
use gix::worktree::state::checkout;

use super::git_dir::GitDir;
use super::{Error, Index};
use crate::model::digest::Oid;
use crate::worker::host::Host;

/// One commit, read and ready to be checked out many times.
pub(in crate::worker) struct Base {
    /// The commit's tree.
    pub(in crate::worker) tree: Oid,
    /// The private git directory of a worker.
    pub(super) worker: GitDir,
    /// The git directory that we capture with.
    pub(in crate::worker) capture: GitDir,
    /// Where submodules would be.
    pub(in crate::worker) gitlinks: Vec<BString>,
    index: gix::index::State,
    options: Mutex<checkout::Options>,
}

/// The two forms of the index after a checkout.
pub(super) struct Indexes {
    /// For the worker.
    pub(super) worker: Vec<u8>,
    /// For us: submodules are marked to be left alone, so that git never looks into one that a worker made.
    pub(super) ours: Vec<u8>,
}

impl Base {
    /// Reads a commit; refuses one that tracks the folders that we put into every worktree.
    pub(in crate::worker) fn read(host: &Host, commit: Oid) -> Result<Self, Error> {
        let repo = host.store.unbounded().map_err(|e| Error::Base(commit, Box::new(e)))?;
        let base = |e: gix::Error| Error::Base(commit, Box::new(e));
        let tree = repo.find_commit(commit.0).and_then(|commit| commit.tree_id()).map_err(base)?.detach();
        let (index, _) = repo.index_from_tree(&tree).map_err(base)?.into_parts();
        for reserved in [&host.inputs, &host.outputs] {
            let tracked =
                |path: &[u8]| path.strip_prefix(reserved.as_bytes()).is_some_and(|r| matches!(r, [] | [b'/', ..]));
            if index.entries().iter().any(|entry| tracked(entry.path(&index))) {
                return Err(Error::Reserved(commit, reserved.clone()));
            }
        }
        let mut options = repo.checkout_options(Source::IdMapping).map_err(base)?;
        options.destination_is_initially_empty = true;
        options.filters.driver_context_mut().treeish = Some(commit.0);
        let gitlinks = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        let gitlinks = gitlinks.map(|entry| entry.path(&index).to_owned()).collect();
        Ok(Self {
            tree: Oid(tree),
            worker: GitDir::for_worker(host, commit)?,
            capture: GitDir::for_capture(host, commit)?,
            gitlinks,
            index,
            options: Mutex::new(options),
        })
    }

    /// Checks the commit out into the empty folder `dir`, with the repository's own filters and the commit's attributes.
    pub(super) fn checkout(&self, host: &Host, dir: &Path) -> Result<Indexes, Error> {
        let failed = |e: gix::Error| Error::Checkout(Box::new(e));
        let mut index = self.index.clone();
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let whole = host.store.unbounded().map_err(|e| Error::Checkout(Box::new(e)))?;
        let objects = whole.objects.clone().into_arc().map_err(|e| Error::Checkout(Box::new(e)))?;
        let (files, bytes) = (gix::progress::Discard, gix::progress::Discard);
        let never = AtomicBool::new(false);
        let outcome = checkout(&mut index, dir, objects, &files, &bytes, &never, options).map_err(failed)?;
        if let Some(collision) = outcome.collisions.first() {
            return Err(Error::Collision(collision.path.to_string()));
        }
        for path in &self.gitlinks {
            std::fs::create_dir_all(dir.join(path.to_path_lossy())).map_err(|e| Error::io(dir, e))?;
        }
        let worker = bytes_of(&index)?;
        let ours = if self.gitlinks.is_empty() {
            worker.clone()
        } else {
            for entry in index.entries_mut().iter_mut().filter(|entry| entry.mode == Mode::COMMIT) {
                entry.flags |= Flags::SKIP_WORKTREE | Flags::EXTENDED;
            }
            bytes_of(&index)?
        };
        Ok(Indexes { worker, ours })
    }

    /// Returns an index of the commit that knows no file of the disk, so that each is looked at anew.
    pub(in crate::worker) fn unread_index(&self) -> Result<Index, Error> {
        let mut index = self.index.clone();
        for entry in index.entries_mut().iter_mut().filter(|entry| entry.mode == Mode::COMMIT) {
            entry.flags |= Flags::SKIP_WORKTREE | Flags::EXTENDED;
        }
        Ok(Index { bytes: bytes_of(&index)?, written: SystemTime::UNIX_EPOCH })
    }
}

fn bytes_of(index: &gix::index::State) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = gix::index::File::from_state(index.clone(), "index");
    file.write_to(&mut bytes, gix::index::write::Options::default()).map_err(|e| Error::Checkout(Box::new(e)))?;
    Ok(bytes)
}
