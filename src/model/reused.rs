//! Reuse of products from an item of another run.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::entry::InputRef;
use super::event::{ItemFired, Product};
use super::item_state::ItemState;
use super::name::{FilePath, ItemId, RunId};

/// The source of reused products: an item with equal manifest and inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reused {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The root in the run's seal, or of the continued run's entries.
    pub root: Digest,
    /// `reused.json`, a proof of the item. `None` for an item of the continued run, whose evidence
    /// is in entry 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Product>,
}

/// The work of an attempt. Equal work has equal products, if the runs have the same base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Work<'a> {
    /// The digest of the manifest.
    pub manifest: Digest,
    /// The resolved inputs by key.
    pub inputs: &'a BTreeMap<FilePath, InputRef>,
}

impl<'a> Work<'a> {
    /// Returns the work that a dispatch begins.
    pub fn from_fired(fired: &'a ItemFired) -> Self {
        Self { manifest: fired.manifest.sha256, inputs: &fired.input_refs }
    }

    /// Returns the work of the latest attempt of an item, if there is one.
    pub fn latest(item: &'a ItemState) -> Option<Self> {
        Some(Self { manifest: item.manifest?.sha256, inputs: &item.inputs })
    }
}

/// Formats `first/build, sealed as 7e4080c9`, or `first/build, whose run this one continues`.
impl fmt::Display for Reused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.evidence.is_none() {
            return write!(f, "{}/{}, whose run this one continues", self.run, self.item);
        }
        write!(f, "{}/{}, sealed as {}", self.run, self.item, self.root.short())
    }
}
