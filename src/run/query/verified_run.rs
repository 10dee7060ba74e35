//! A verified run, from which bytes can be taken.

use std::io::Write;
use std::ops::Deref;

use crate::git::store::Store;
use crate::git::verified_stream;
use crate::ledger::chain::Link;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, Product};
use crate::model::format::DOCUMENTS;
use crate::model::name::ItemId;
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
        Ok(Self { view: view::from_links(store, &admitted.run, &admitted.reference, links)? })
    }

    /// Returns bytes that an entry names. If entries name this blob as a product or a revision of a
    /// document, it must be what each of them says.
    pub fn blob(&self, product: &Product) -> Blob {
        let oid = product.oid;
        let mut recorded = vec![product.sha256];
        for link in &self.view.links {
            match &link.entry.event {
                Event::ItemReconciled(e) => {
                    let same = e.products.values().filter(|other| other.oid == oid);
                    recorded.extend(same.map(|other| other.sha256));
                }
                Event::DocumentWritten(e) if e.oid == oid => recorded.push(e.sha256),
                _ => {}
            }
        }
        Blob { oid, recorded }
    }

    /// Returns the latest file of the run as a whole: its plan, an artifact, a document.
    pub fn file(&self, path: &str) -> Option<Blob> {
        let events = self.view.links.iter().rev().map(|link| &link.entry.event);
        events
            .filter(|event| event.item().is_none() || path.starts_with(DOCUMENTS))
            .find_map(|event| event.files().get(path).map(|product| self.blob(product)))
    }

    /// Returns the manifest of an item's latest attempt, or `None` if there is no attempt.
    pub fn manifest(&self, item: &ItemId) -> Option<Blob> {
        let at = self.view.state.graph.position(item)?;
        self.view.state.items[at].manifest.as_ref().map(|product| self.blob(product))
    }
}

impl Deref for VerifiedRun {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
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
