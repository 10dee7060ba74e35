//! Exports of a run's evidence in the formats of other verifiers.
//!
//! Each export is created from a verified run. It states what the exporter found in the chain; the
//! chain stays the proof. Statements and audit bundles are signed by the exporting key. The formats
//! of other tools are not, and say in a field of their own where the run is.

mod agent_trace;
mod audit_bundle;
pub mod bundle_json;
mod cyclonedx;
mod facts;
mod git_ai;
pub mod in_toto;
mod item_lines;
mod junit;
pub mod operations;
mod otel;
mod xml;

pub use audit_bundle::verify_bundle_json;

use crate::git::store::{self, Store};
use crate::git::verified_stream;
use crate::ledger::chain::Link;
use crate::ledger::sign;
use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemFired, ItemReconciled, Outcome};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::{self, Manifest};
use crate::model::name::{FilePath, ItemId, RunId};
use crate::run::query::View;

/// A done item, with the entries and manifest of the attempt that counts.
struct Done<'a> {
    at: ItemIndex,
    fired: (&'a Link, &'a ItemFired),
    reconciled: (&'a Link, &'a ItemReconciled),
    manifest: Manifest,
}

/// Returns the done items in plan order.
fn done<'a>(store: &Store, view: &'a View) -> Result<Vec<Done<'a>>, Error> {
    let mut done = Vec::new();
    for (at, item) in view.state.graph.items().indexed() {
        let reconciled = view
            .links
            .iter()
            .filter_map(|link| Some((link, link.entry.event.end_of(&item.id)?)))
            .find(|(_, e)| e.status == Outcome::Done);
        let Some(reconciled) = reconciled else { continue };
        let fired = view.links.iter().find_map(|link| match &link.entry.event {
            Event::ItemFired(e) if e.item == item.id && e.attempt == reconciled.1.attempt => Some((link, e)),
            _ => None,
        });
        let fired = fired.ok_or_else(|| Error::Undispatched(item.id.clone()))?;
        let manifest = read_manifest(store, fired.1)?;
        done.push(Done { at, fired, reconciled, manifest });
    }
    Ok(done)
}

/// Reads the manifest that a dispatch recorded.
fn read_manifest(store: &Store, fired: &ItemFired) -> Result<Manifest, Error> {
    let bytes = store.read_blob(fired.manifest.oid)?;
    if Digest::compute(&bytes) != fired.manifest.sha256 {
        return Err(Error::NoManifest(fired.item.clone()));
    }
    Ok(Manifest::parse(&bytes)?)
}

/// Returns the version in the name of a program: `0.1.0` of `git-handoff 0.1.0`.
fn tool_version(tool: &str) -> &str {
    tool.split_once(' ').map_or(tool, |(_, version)| version)
}

errors! {
    /// An error while exporting a run.
    #[derive(Debug, thiserror::Error)] pub enum Error = "export";
    Open: "the run is not sealed; only a finished run is evidence";
    Undispatched(ItemId): "the item {0:?} is done but was never dispatched";
    NoManifest(ItemId): "the manifest of {0:?} is missing or differs from the sealed one";
    Unspeakable(ItemId, String): "the item {0:?} consumed {1}, but this format has only products of items";
    Written(String, FilePath): "{0} put the document {1:?} on the run, but this format has only products of items";
    Said(String): "the run's own outcome is {0:?}, but this format has only outcomes of items";
    Reused(ItemId, RunId):
        "the item {0:?} took its products from the run {1}, and this format knows no items but those that were run";
    SeveralPatches(usize):
        "the models of {0} items made patches, and an authorship log has one state of the files: name an item (RUN/ITEM) or a commit (--commit REV)";
    #[from] Store(store::Error), Sign(sign::Error);
    #[from "export"] Bytes(verified_stream::Error), Manifest(manifest::Error);
}
