//! A proof: evidence that can be verified without the run or its repository.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;
use super::event::Product;
use super::format;
use super::json::{self, JsonPath};
use super::name::{ItemId, RunId};
use super::plan::ProductKey;
use super::problem::{Code, Problem};

/// The schema of proofs.
pub const SCHEMA: &str = "git-handoff.proof/1";

/// Evidence that entries are in a sealed run: of an item, or of the run's continuation.
///
/// Parsed but unverified; `verify` checks that it is about one thing and proves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// [`SCHEMA`].
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "git-handoff.proof/1")))]
    pub schema: String,
    /// The run.
    pub run: RunId,
    /// The item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<Handed>,
    /// The earlier state of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Earlier>,
    /// The number of entries in the tree.
    pub entries: u64,
    /// The root of the tree.
    pub root: Digest,
    /// Entry 0, which names the writers and the plan.
    pub first: Signed,
    /// The admission of the sealing key; `None` if entry 0 names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Signed>,
    /// The seal.
    pub last: Signed,
    /// The included entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Leaf>,
}

/// A product by its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Handed {
    /// `patch` or `outputs/<path>`.
    pub key: ProductKey,
    /// The product in the entry.
    pub is: Product,
}

/// An earlier state of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// The number of entries.
    pub entries: u64,
    /// The root.
    pub root: Digest,
    /// The consistency path from it.
    pub path: Vec<Digest>,
}

/// An entry with its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The commit's bytes.
    pub commit: String,
    /// The inclusion path; empty for the seal, which is not under its own root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Digest>>,
}

/// An entry with its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// The entry; the canonical form is hashed.
    #[cfg_attr(feature = "schemas", schemars(with = "super::entry::Entry"))]
    pub entry: Value,
    /// The inclusion path.
    pub path: Vec<Digest>,
}

impl Proof {
    /// Parses a proof, and refuses ambiguous JSON.
    ///
    /// Besides what [`json::parse`] refuses: unknown and missing fields, `null`, empty values that
    /// should be absent, and arrays in place of objects.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let value = json::parse(bytes).map_err(|problems| problems[0].clone())?;
        let written = format::canonical(&value);
        // Consumes the value, because two would exceed the memory limit.
        let proof = Self::deserialize(value).map_err(|e| wrong_proof(e.to_string()))?;
        if format::canonical(&proof) != written {
            return Err(wrong_proof("a field is null, empty, or an array in the place of an object".to_owned()));
        }
        let are_under_root = proof.admitted.iter().chain([&proof.first]).all(|signed| signed.path.is_some());
        if !are_under_root || proof.last.path.is_some() || proof.shown.iter().any(|leaf| !leaf.entry.is_object()) {
            return Err(wrong_proof("a path is missing or has no place, or an entry is no object".to_owned()));
        }
        Ok(proof)
    }
}

fn wrong_proof(why: String) -> Problem {
    Problem::new(Code::WrongType, &JsonPath::root(), why)
}
