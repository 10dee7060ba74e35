//! Products that were taken from an item of another run, instead of being made again.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bounds;
use super::digest::Digest;
use super::format;
use super::json;
use super::manifest::Manifest;
use super::name::{ItemId, RunId};
use super::proof::Proof;

/// What of `reused.json` may be as heavy as an entry or a manifest: the manifest, two entries that are shown, and the rest of the proof.
const HEAVY: usize = 4;

/// The fields of a manifest that are not about what was to be done.
pub const BESIDE_TASK: [&str; 4] = ["run", "item", "attempt", "branches"];

/// Where the products of an item come from that was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reused {
    /// The run.
    pub run: RunId,
    /// Its item.
    pub item: ItemId,
    /// The root that the run's seal says, or that over the entries of the run that is continued.
    pub root: Digest,
    /// The digest of the item's `reused.json`, the evidence.
    pub evidence: Digest,
    /// Whether the run is the one that the run of the item continues, whose entries stand for a proof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
}

/// In words: `first/build, sealed as 7e4080c9`, or `first/build, whose run this one continues`.
impl fmt::Display for Reused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.continued {
            return write!(f, "{}/{}, whose run this one continues", self.run, self.item);
        }
        write!(f, "{}/{}, sealed as {}", self.run, self.item, self.root.short())
    }
}

/// What `reused.json` holds: all that shows, with nothing else at hand, that an item of a sealed run was given just the same to do, and
/// what it handed over.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The proof of that item; `None` if the run is the one that the run of the item continues, whose entry 0 holds all of it.
    pub proof: Option<Proof>,
    /// The manifest of the attempt that it shows.
    pub manifest: Manifest,
}

impl Evidence {
    /// Returns the bytes of `reused.json`.
    pub fn canonical(&self) -> Vec<u8> {
        match &self.proof {
            Some(proof) => format::canonical(&json!({ "manifest": self.manifest, "proof": proof })),
            None => format::canonical(&json!({ "manifest": self.manifest })),
        }
    }

    /// Reads them back; nothing where they are not exactly what is written, or heavier than what any evidence consists of.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if !bounds::are_light(bytes, HEAVY) {
            return None;
        }
        let Value::Object(mut fields) = json::lenient(bytes).ok()? else { return None };
        let manifest = Manifest::parse(&format::canonical(&fields.remove("manifest")?)).ok()?;
        let proof = match fields.remove("proof") {
            Some(proof) => Some(Proof::parse(&format::canonical(&proof)).ok()?),
            None => None,
        };
        let evidence = Self { proof, manifest };
        (evidence.canonical() == bytes).then_some(evidence)
    }
}

/// Returns the digest of what a manifest says was to be done, whichever run, item and attempt it was for: two attempts of one task
/// have the same.
pub fn task(manifest: &Manifest) -> Digest {
    let mut value = serde_json::to_value(manifest).expect("a manifest is JSON");
    if let Value::Object(fields) = &mut value {
        BESIDE_TASK.iter().for_each(|field| drop(fields.remove(*field)));
    }
    format::digest_of(&value)
}
