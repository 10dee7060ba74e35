//! Reuse of products from an item of another run.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::bounds;
use super::digest::Digest;
use super::event::Product;
use super::format;
use super::json;
use super::manifest::Manifest;
use super::name::{ItemId, RunId};
use super::proof::Proof;

/// The limit of `reused.json` in entries and manifests: the manifest, two entries, and the rest of
/// the proof.
const HEAVY: usize = 4;

/// The fields of a manifest that do not describe the task. `branches` is one of its claims.
pub const BESIDE_TASK: [&str; 3] = ["item", "attempt", "branches"];

/// The source of reused products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reused {
    /// The run.
    pub run: RunId,
    /// The item.
    pub item: ItemId,
    /// The root in the run's seal, or of the continued run's entries.
    pub root: Digest,
    /// `reused.json`, the evidence.
    pub evidence: Product,
    /// Whether it is the continued run, whose entries replace a proof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
}

/// Formats `first/build, sealed as 7e4080c9`, or `first/build, whose run this one continues`.
impl fmt::Display for Reused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.continued {
            return write!(f, "{}/{}, whose run this one continues", self.run, self.item);
        }
        write!(f, "{}/{}, sealed as {}", self.run, self.item, self.root.short())
    }
}

/// The content of `reused.json`: complete evidence that an item of a sealed run had an identical
/// task, and of its products.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The proof of the item; `None` for the continued run, whose evidence is in entry 0.
    pub proof: Option<Proof>,
    /// The manifest of the attempt.
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

    /// Parses the bytes, or returns `None` unless in written form and within the limits.
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

/// Returns the digest of a manifest's task, independent of item, attempt and base.
pub fn task(manifest: &Manifest) -> Digest {
    let mut value = serde_json::to_value(manifest).expect("a manifest is JSON");
    if let Value::Object(fields) = &mut value {
        BESIDE_TASK.iter().for_each(|field| drop(fields.remove(*field)));
    }
    if let Some(Value::Object(claims)) = value.get_mut("claims") {
        claims.remove("branches");
    }
    format::digest_of(&value)
}
