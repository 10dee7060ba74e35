//! Collects the protected files of a run's base, so that its verifier needs no repository.
//!
//! The base's commit and trees become blobs: no object of a bundle then names one that is missing.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::BString;

use crate::git::extent::extent;
use crate::git::merge::{self, Scratch};
use crate::git::protected::{self, Protection, SUBMODULE, quote_path};
use crate::git::store::{self, Edit, KeepGuard, Store};
use crate::git::verified_stream;
use crate::model::bounds;
use crate::model::digest::Oid;
use crate::model::entry::{Event, Outcome, Product};
use crate::model::format;
use crate::model::manifest::Manifest;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::ProductKey;
use crate::run::query::View;

/// The files of a run's base that its verifier needs.
pub(super) struct ProtectedFiles {
    run: RunId,
    base: Oid,
    files: BTreeMap<BString, Oid>,
}

impl ProtectedFiles {
    /// Returns the files, or `None` if no item of the run protects files.
    pub(super) fn find(store: &Store, view: &View) -> Result<Option<Self>, Error> {
        let manifests = manifests(store, view)?;
        let (run, base) = (view.run.clone(), view.state.submitted.base);
        if manifests.is_empty() {
            return Ok(None);
        }
        if !store.contains(base) {
            return Err(Error::NoBase { run, base });
        }
        let scratch = Scratch::isolated(store, base)?;
        let mut files = BTreeMap::new();
        let mut known = BTreeSet::new();
        for manifest in manifests.iter().filter(|manifest| known.insert(&manifest.protect)) {
            let protection = Protection::new(&scratch, &manifest.protect);
            let entries = protection.entries(scratch.base())?.into_iter();
            files.extend(entries.filter(|(_, entry)| entry.mode != SUBMODULE).map(|(path, entry)| (path, entry.oid)));
        }
        let applied = applied(view);
        if !applied.is_empty() {
            let patches = patches_of(view, &applied)
                .map(|patch| verified_stream::read(store, patch.oid, &[patch.sha256]))
                .collect::<Result<Vec<_>, _>>()?;
            files.extend(scratch.files_for(&patches)?);
        }
        match files.iter().find(|(_, blob)| !store.contains(**blob)) {
            Some((path, _)) => Err(Error::NoFile { run, base, path: quote_path(path.as_ref()) }),
            None => Ok(Some(Self { run, base, files })),
        }
    }

    /// Returns the run.
    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns the number of files.
    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    /// Writes the tree of a bundle's ref. The objects of the base are in `store`.
    pub(super) fn write(&self, store: &Store) -> Result<(Oid, KeepGuard), Error> {
        let (tree, _) = store.commit(self.base)?;
        let (extent, trees) = extent(store, tree)?;
        if !extent.is_bounded() {
            return Err(Error::TooLarge { run: self.run.clone(), base: self.base });
        }
        let mut edits = vec![(format::BASE_COMMIT.to_owned(), Edit::Bytes(store.read(self.base)?.1))];
        let mut total = 0;
        for oid in trees {
            let (_, bytes) = store.read(oid)?;
            total += bytes.len() as u64;
            edits.push((format!("{}/{oid}", format::BASE_TREES), Edit::Bytes(bytes)));
        }
        if total > bounds::BASE_TREES {
            return Err(Error::TooLarge { run: self.run.clone(), base: self.base });
        }
        let blobs: BTreeSet<Oid> = self.files.values().copied().collect();
        edits.extend(blobs.into_iter().map(|blob| (format!("{}/{blob}", format::BASE_FILES), Edit::Blob(blob))));
        let mut batch = store.batch();
        let edited = batch.edit_tree(None, &edits)?;
        Ok((edited, batch.keep()?))
    }
}

/// Returns the manifests of items that a verifier recomputes protected files of.
fn manifests(store: &Store, view: &View) -> Result<Vec<Manifest>, Error> {
    let (mut manifests, mut fired) = (Vec::new(), BTreeMap::new());
    for link in &view.links {
        if let Event::ItemFired(e) = &link.entry.event {
            fired.insert(&e.item, e.manifest.oid);
        }
        let Event::ItemReconciled(e) = &link.entry.event else { continue };
        if e.status != Outcome::Done || e.reused.is_some() {
            continue;
        }
        let Some(manifest) = fired.get(&e.item) else { continue };
        let manifest = Manifest::parse(&store.read_blob_of(*manifest, bounds::MANIFEST)?);
        manifests.extend(manifest.ok().filter(|manifest| !manifest.protect.is_empty()));
    }
    Ok(manifests)
}

/// Returns the items whose patches are applied before another one begins.
fn applied(view: &View) -> BTreeSet<&ItemId> {
    let graph = &view.state.graph;
    let applied = view.state.items.indexed().flat_map(|(at, _)| view.state.applied(at));
    applied.map(|at| &graph.item(at).id).collect()
}

fn patches_of(view: &View, items: &BTreeSet<&ItemId>) -> impl Iterator<Item = Product> {
    let ends = view.links.iter().filter_map(|link| match &link.entry.event {
        Event::ItemReconciled(e) => Some(e),
        _ => None,
    });
    ends.filter(|e| items.contains(&e.item)).filter_map(|e| e.products.get(&ProductKey::Patch).copied())
}

errors! {
    /// Why the protected files of a run's base cannot be bundled.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NoBase { run: RunId, base: Oid }:
        "cannot bundle the protected files of the run {run:?}: its base {base} is not here";
    NoFile { run: RunId, base: Oid, path: String }:
        "cannot bundle the protected files of the run {run:?}: its base {base} is here without {path}";
    TooLarge { run: RunId, base: Oid }:
        "cannot bundle the protected files of the run {run:?}: its base {base} has too many paths";
    Patch(#[from] verified_stream::Error): "cannot read a patch";
    #[from] Store(store::Error), Merge(merge::Error), Protected(protected::Error);
}
