//! A proof: what convinces somebody who has neither the run nor its repository.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;
use super::event::Product;
use super::format;
use super::json::{self, JsonPath};
use super::name::{ItemId, RunId};
use super::plan::ProductKey;
use super::problem::{Code, Problem};

/// The schema that proofs name.
pub const SCHEMA: &str = "git-handoff.proof/1";

/// What shows, on its own, that entries stand in a sealed run: of an item, or of how the run went on.
///
/// It is as somebody wrote it: that it is about one thing, and proves that, is for `verify` to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run.
    pub run: RunId,
    /// The item that the proof is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The product that the proof is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<Handed>,
    /// The earlier state that the run went on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Earlier>,
    /// How many entries the tree is over.
    pub entries: u64,
    /// Its root.
    pub root: Digest,
    /// Entry 0, which names the writers and the plan.
    pub first: Signed,
    /// The admission of the key that sealed; `None` where entry 0 names that key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Signed>,
    /// The seal.
    pub last: Signed,
    /// The entries that are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Leaf>,
}

/// A product by its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handed {
    /// `patch` or `outputs/<path>`.
    pub key: ProductKey,
    /// What the entry says of it.
    pub is: Product,
}

/// An earlier state of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// How many entries there were.
    pub entries: u64,
    /// The root over them.
    pub root: Digest,
    /// The consistency path from it.
    pub path: Vec<Digest>,
}

/// An entry with its signature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The commit's bytes, as git has them.
    pub commit: String,
    /// The inclusion path of the entry; none for the seal, which is not under its own root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<Digest>>,
}

/// An entry in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// The entry; in canonical form, its bytes are what is hashed.
    pub entry: Value,
    /// Its inclusion path.
    pub path: Vec<Digest>,
}

impl Proof {
    /// Reads a proof, and refuses what two readers could read differently.
    ///
    /// That is, besides what [`json::parse`] refuses: a field that is unknown, `null`, or empty where it is to be absent, and an
    /// array in the place of an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problem> {
        let value = json::parse(bytes).map_err(|problems| problems[0].clone())?;
        let wrong = |why: String| Problem::new(Code::WrongType, &JsonPath::root(), why);
        let said = format::canonical(&value);
        // The value goes into it: two of them would take more than the bytes allow.
        let proof = Self::deserialize(value).map_err(|e| wrong(e.to_string()))?;
        if format::canonical(&proof) != said {
            return Err(wrong("a field is null, empty, or an array in the place of an object".to_owned()));
        }
        Ok(proof)
    }
}
