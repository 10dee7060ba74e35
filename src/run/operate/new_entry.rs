//! An event to append, with the files that belong to it.

use std::collections::BTreeMap;

use crate::model::entry::{Cause, Event, RunExtended};
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::pipeline::Spec;
use crate::model::plan::{Item, Selector, Source};
use crate::model::role::{Keys, Refused};
use crate::model::state::{Illegal, RunState};

/// An event to append, with the files that belong to it.
#[derive(Clone, Debug)]
pub enum NewEntry {
    /// An event without files.
    Plain(Event),
    /// A dispatch with its manifest.
    Fired(Event, Box<Manifest>),
    /// The end of an item that reuses products, with the evidence.
    Reused(Event, Vec<u8>),
    /// Items to add in the order of their ids, and the pipelines that they name and the run lacks.
    Extended(Cause, Vec<Item>, BTreeMap<String, Spec>),
}

impl NewEntry {
    /// Returns the item that it is about, if any.
    pub fn item(&self) -> Option<&ItemId> {
        match self {
            Self::Plain(event) | Self::Fired(event, _) | Self::Reused(event, _) => event.item().map(|(item, _)| item),
            Self::Extended(..) => None,
        }
    }

    /// Returns true for the end of an attempt by its driver.
    pub(super) fn is_result(&self) -> bool {
        match self {
            Self::Plain(Event::ItemReconciled(e)) => e.attempt > 0,
            Self::Plain(Event::ItemRetried(_)) => true,
            Self::Plain(Event::ItemRequeued(e)) => e.because.is_none(),
            _ => false,
        }
    }

    /// Returns why a key cannot append it, or `None` if the key can.
    pub(super) fn refused(&self, keys: &Keys, key: &str) -> Option<Refused> {
        match self {
            Self::Plain(event) | Self::Fired(event, _) | Self::Reused(event, _) => keys.refuse(key, event),
            Self::Extended(cause, ..) => keys.refuse(key, &Event::RunExtended(RunExtended::of(cause.clone(), &[]))),
        }
    }

    /// Applies the event, which `key` signs, to the state, and returns it.
    pub(super) fn apply(&self, state: &mut RunState, key: &str) -> Result<Event, Illegal> {
        match self {
            Self::Plain(event) | Self::Fired(event, _) | Self::Reused(event, _) => {
                state.apply_signed(event, Some(key)).map(|()| event.clone())
            }
            Self::Extended(cause, items, pipelines) => {
                let pipelines = pipelines.iter().map(|(name, spec)| (name.clone(), spec.digest())).collect();
                let event = RunExtended { pipelines, ..RunExtended::of(cause.clone(), items) };
                state.extend(&event, items.clone()).map(|()| Event::RunExtended(event))
            }
        }
    }

    /// Returns true if the documents that a dispatch consumes are still the highest revisions, and
    /// match what the item wants.
    pub(super) fn is_bound(&self, state: &RunState) -> bool {
        let (Self::Plain(Event::ItemFired(fired)) | Self::Fired(Event::ItemFired(fired), _)) = self else {
            return true;
        };
        fired.input_refs.values().all(|input| match (&input.from, &input.select) {
            (Source::Documents, Selector::Document { name, schema }) => {
                let latest = state.documents.latest(name);
                latest.is_some_and(|latest| {
                    let admitted = schema.as_ref().is_none_or(|wanted| wanted.admits(latest.schema.as_ref()));
                    latest.product.sha256 == input.digest && admitted
                })
            }
            _ => true,
        })
    }
}
