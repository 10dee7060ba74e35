//! Reads the bases that a bundle carries: a commit and its trees, each as the bytes of a blob.
//!
//! An object is what its bytes hash to, so whatever else is there is of no effect.

use std::collections::HashSet;

use gix::objs::Kind;

use crate::git::store::{Batch, Error, Store};
use crate::git::tree;
use crate::model::bounds;
use crate::model::digest::Oid;
use crate::model::format;

/// Unpacks the bases of a bundle, each object once and within the limits for all of them.
pub(super) struct Unpacking<'s> {
    /// The bundle.
    store: &'s Store,
    known: HashSet<Oid>,
    /// The bytes read so far.
    total: u64,
}

impl<'s> Unpacking<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        Self { store, known: HashSet::new(), total: 0 }
    }

    /// Writes the commit and the trees in the folder `carried` into `bases`. What has another form,
    /// or exceeds the limits, is left out.
    pub(super) fn unpack(&mut self, carried: Oid, bases: &Store) -> Result<(), Error> {
        let mut batch = bases.batch();
        if self.known.insert(carried) {
            // The base is missing then, and so the rows that need it are open.
            let _ = self.read(carried, &mut batch);
        }
        drop(batch.keep()?);
        Ok(())
    }

    fn read(&mut self, carried: Oid, batch: &mut Batch) -> Option<()> {
        self.count(carried)?;
        let commit = self.store.blob_at(carried, format::BASE_COMMIT).ok()??;
        let trees = self.store.tree_at(carried, format::BASE_TREES).ok()??;
        self.count(trees)?;
        let commit = self.store.read_blob_of(commit, bounds::COMMIT).ok()?;
        batch.write(Kind::Commit, &commit).ok()?;
        for (_, blob) in tree::files(self.store, trees).ok()? {
            if self.known.insert(blob) {
                self.count(blob)?;
                batch.write(Kind::Tree, &self.store.read_blob_of(blob, bounds::TREE).ok()?).ok()?;
            }
        }
        Some(())
    }

    /// Counts an object; returns `None` if it is missing or there are too many bytes.
    fn count(&mut self, oid: Oid) -> Option<()> {
        self.total = self.total.saturating_add(self.store.size(oid).ok()??);
        (self.total <= bounds::BASE_TREES).then_some(())
    }
}
