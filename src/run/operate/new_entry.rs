//! An event to append, with the bytes that it brings.

use std::collections::BTreeMap;

use crate::model::entry::{Cause, Event, ItemReconciled, Product, RunExtended};
use crate::model::event::Unnamed;
use crate::model::extension::definition;
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::pipeline::Spec;
use crate::model::plan::{Item, Selector, Source};
use crate::model::role::{Keys, Refused};
use crate::model::state::{Illegal, RunState};

/// An event to append, with the bytes that it brings.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The event.
    pub event: Event,
    /// The bytes that the event names and that are not stored yet.
    pub(super) bytes: Vec<Vec<u8>>,
    /// The items that a `run.extended` adds, in the order of their ids.
    items: Vec<Item>,
}

impl NewEntry {
    /// Returns an event whose bytes, if it names any, are stored.
    pub fn plain(event: Event) -> Self {
        Self { event, bytes: Vec::new(), items: Vec::new() }
    }

    /// Returns a dispatch with its manifest.
    pub fn fired(event: Event, manifest: &Manifest) -> Self {
        Self { bytes: vec![manifest.canonical()], ..Self::plain(event) }
    }

    /// Returns the end of an item that reuses products, with the evidence.
    pub fn reused(end: ItemReconciled, evidence: Vec<u8>) -> Self {
        Self { bytes: vec![evidence], ..Self::plain(Event::ItemReconciled(end)) }
    }

    /// Returns the entry that adds items, in the order of their ids, and the pipelines that they
    /// name and the run lacks.
    pub fn extended(
        cause: Cause,
        items: Vec<Item>,
        pipelines: &BTreeMap<String, Spec>,
        hash: gix::hash::Kind,
    ) -> Result<Self, Unnamed> {
        let mut event = RunExtended::new(cause, &items, hash)?;
        let mut bytes: Vec<Vec<u8>> = items.iter().map(definition).collect();
        for (name, spec) in pipelines {
            event.pipelines.insert(name.clone(), Product::from_bytes(spec.bytes(), hash)?);
            bytes.push(spec.bytes().to_vec());
        }
        Ok(Self { event: Event::RunExtended(event), bytes, items })
    }

    /// Returns the item that it is about, if any.
    pub fn item(&self) -> Option<&ItemId> {
        self.event.item().map(|(item, _)| item)
    }

    /// Returns true for the end of an attempt by its driver.
    pub(super) fn is_result(&self) -> bool {
        match &self.event {
            Event::ItemReconciled(e) => e.attempt > 0 && e.reused.is_none(),
            Event::ItemRetried(_) => true,
            Event::ItemRequeued(e) => e.because.is_none(),
            _ => false,
        }
    }

    /// Returns why a key cannot append it, or `None` if the key can.
    pub(super) fn refused(&self, keys: &Keys, key: &str) -> Option<Refused> {
        keys.refuse(key, &self.event)
    }

    /// Applies the event, which `key` signs, to the state.
    pub(super) fn apply(&self, state: &mut RunState, key: &str) -> Result<(), Illegal> {
        match &self.event {
            Event::RunExtended(e) => state.extend(e, self.items.clone()),
            event => state.apply_signed(event, Some(key)),
        }
    }

    /// Returns true if the documents that a dispatch consumes are still the highest revisions, and
    /// match what the item wants.
    pub(super) fn is_bound(&self, state: &RunState) -> bool {
        let Event::ItemFired(fired) = &self.event else { return true };
        fired.input_refs.values().all(|input| match (&input.from, &input.select) {
            (Source::Documents, Selector::Document { name, schema }) => {
                let latest = state.documents.latest(name);
                latest.is_some_and(|latest| {
                    let admitted = schema.as_ref().is_none_or(|required| required.admits(latest.schema.as_ref()));
                    latest.product.sha256 == input.digest && admitted
                })
            }
            _ => true,
        })
    }
}
