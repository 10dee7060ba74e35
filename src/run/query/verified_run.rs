//! A verified run, from which bytes can be taken.

use std::io::Write;
use std::ops::Deref;

use crate::git::store::Store;
use crate::git::verified_stream;
use crate::ledger::chain::Link;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Event;
use crate::model::format::{self, Layout};
use crate::verify::{GatedRun, Verified, VerifiedEntry};

use super::view::{self, Error, View};

/// A run that passed the gate, read from the very commit that was verified. All code that takes
/// bytes out of a run, or believes its entries, requires one.
///
/// ```compile_fail,E0451
/// fn untrusted(view: git_handoff::run::query::View) -> git_handoff::run::query::VerifiedRun {
///     git_handoff::run::query::VerifiedRun { view }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct VerifiedRun {
    view: View,
}

impl VerifiedRun {
    /// Returns a run that passed the gate, with the entries that were verified there.
    pub fn read(store: &Store, admitted: &Verified<GatedRun>) -> Result<Self, Error> {
        let link =
            |it: &VerifiedEntry| Link { commit: it.commit, tree: it.tree, hash: it.hash, entry: it.entry.clone() };
        let links = admitted.entries.iter().map(link).collect();
        Ok(Self { view: view::of(store, &admitted.run, &admitted.reference, links)? })
    }

    /// Returns the product or document revision with this blob id.
    pub fn product(&self, oid: Oid) -> Blob {
        let mut recorded = Vec::new();
        for link in &self.view.links {
            match &link.entry.event {
                Event::ItemReconciled(e) => {
                    let same = e.products.values().filter(|product| product.oid == oid);
                    recorded.extend(same.map(|product| product.sha256));
                }
                Event::DocumentWritten(e) if e.oid == oid => recorded.push(e.sha256),
                _ => {}
            }
        }
        Blob { oid, recorded }
    }

    /// Returns the file at a path of the run's tree, or `None` if it does not exist.
    pub fn file(&self, store: &Store, path: &str) -> Result<Option<Blob>, Error> {
        let Some(tree) = self.view.head.tree else { return Ok(None) };
        let Some(oid) = store.blob_at(tree, path)? else { return Ok(None) };
        let mut blob = self.product(oid);
        let layout = self.view.state.layout();
        // The manifest of an attempt replaces that of the attempt before.
        let last = self.view.links.iter().rev().find_map(|link| sealed(&link.entry.event, layout, path));
        blob.recorded.extend(last);
        Ok(Some(blob))
    }

    /// Returns the evidence for an imported product, by the name that entry 0 gives it.
    pub(crate) fn evidence(&self, store: &Store, name: &str) -> Result<Option<Blob>, Error> {
        let (Some(tree), Some(import)) = (self.view.head.tree, self.view.state.submitted.imports.get(name)) else {
            return Ok(None);
        };
        let [_, path] = format::import_paths(name);
        let Some(oid) = store.blob_at(tree, &path)? else { return Ok(None) };
        Ok(Some(Blob { oid, recorded: vec![import.evidence] }))
    }
}

impl Deref for VerifiedRun {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

/// Returns the digest that an entry records for the file at a path. Stored item states have none;
/// the gate has checked them.
fn sealed(event: &Event, layout: Layout, path: &str) -> Option<Digest> {
    match event {
        Event::RunSubmitted(e) if path == format::PLAN => Some(e.plan),
        Event::RunSubmitted(e) if path == format::RULES => e.rules,
        Event::RunSubmitted(e) => {
            let artifact = e.artifacts.iter().find(|(name, _)| format::artifact_path(name) == path);
            artifact.map(|(_, digest)| *digest)
        }
        Event::ItemFired(e) if layout.manifest(&e.item) == path => Some(e.manifest),
        Event::RunExtended(e) => {
            e.items.iter().find(|(id, _)| layout.definition(id) == path).map(|(_, digest)| *digest)
        }
        _ => None,
    }
}

/// A blob of a verified run, with every digest that the entries record for it.
#[derive(Clone, Debug)]
pub struct Blob {
    oid: Oid,
    recorded: Vec<Digest>,
}

impl Blob {
    /// Adds a digest that the blob must have.
    #[must_use]
    pub fn that_is(mut self, digest: Digest) -> Self {
        self.recorded.push(digest);
        self
    }

    /// Copies the blob to `out` after checking its bytes. If they do not match, nothing is copied.
    pub fn copy(&self, store: &Store, out: &mut dyn Write) -> Result<(), verified_stream::Error> {
        verified_stream::copy(store, self.oid, &self.recorded, out)
    }

    /// Reads the blob into memory, after the same check.
    pub fn read(&self, store: &Store) -> Result<Vec<u8>, verified_stream::Error> {
        verified_stream::read(store, self.oid, &self.recorded)
    }
}
