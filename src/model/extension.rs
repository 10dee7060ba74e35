//! Items that are added to a run after it was submitted.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::digest::Digest;
use super::format;
use super::name::ItemId;
use super::plan::Item;

/// The fields of `run.extended`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunExtended {
    /// The origin of the items.
    pub cause: Cause,
    /// The digest of each item's `item.json`; not empty.
    #[serde(deserialize_with = "read_items")]
    pub items: BTreeMap<ItemId, Digest>,
    /// The digests of new pipelines, by the names that the items use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<String, Digest>,
}

fn read_items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<ItemId, Digest>, D::Error> {
    let items = BTreeMap::deserialize(deserializer)?;
    if items.is_empty() { Err(serde::de::Error::custom("there are no items")) } else { Ok(items) }
}

impl RunExtended {
    /// Returns the event that adds items.
    pub fn of(cause: Cause, items: &[Item]) -> Self {
        let items = items.iter().map(|item| (item.id.clone(), digest(item))).collect();
        Self { cause, items, pipelines: BTreeMap::new() }
    }
}

/// The fields of `run.concluded`: an outcome recorded by a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConcluded {
    /// The rule.
    pub rule: ItemId,
    /// The outcome, as a word.
    pub outcome: String,
    /// The outcome, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The origin of added items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A rule of the run, by id.
    Rule(ItemId),
    /// The entry's actor.
    Actor,
}

/// Returns the bytes of an item's `item.json`: the normalised item in canonical form.
pub fn definition(item: &Item) -> Vec<u8> {
    format::canonical(&item.to_json())
}

/// Returns the digest of an item's `item.json`.
pub fn digest(item: &Item) -> Digest {
    Digest::of(&definition(item))
}
