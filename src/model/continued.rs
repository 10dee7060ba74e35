//! The continuation of a run under another id, with other keys.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::event::Product;
use super::name::RunId;

/// The continued run, as in entry 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Continues {
    /// The run.
    pub run: RunId,
    /// The number of its entries, without a seal.
    pub entries: u64,
    /// The Merkle root of the entries.
    pub root: Digest,
    /// `continues.json`, the evidence: the commits of all entries.
    pub evidence: Product,
}
