//! Reuse of products from an item of another run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::event::Product;
use super::name::{ItemId, RunId};

/// The source of reused products: an item with equal manifest and inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Formats `first/build, sealed as 7e4080c9`, or `first/build, whose run this one continues`.
impl fmt::Display for Reused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.evidence.is_none() {
            return write!(f, "{}/{}, whose run this one continues", self.run, self.item);
        }
        write!(f, "{}/{}, sealed as {}", self.run, self.item, self.root.short())
    }
}
