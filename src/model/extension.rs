//! Items that are added to a run after it was submitted.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::digest::Digest;
use super::event::{Product, Unnamed};
use super::format;
use super::name::ItemId;
use super::plan::Item;

/// The fields of `run.extended`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunExtended {
    /// The origin of the items.
    pub cause: Cause,
    /// Each item's `item.json`; not empty.
    #[serde(deserialize_with = "read_items")]
    pub items: BTreeMap<ItemId, Product>,
    /// New pipelines, by the names that the items use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<String, Product>,
}

fn read_items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<ItemId, Product>, D::Error> {
    let items = BTreeMap::deserialize(deserializer)?;
    if items.is_empty() { Err(serde::de::Error::custom("there are no items")) } else { Ok(items) }
}

impl RunExtended {
    /// Returns the event that adds items.
    pub fn new(cause: Cause, items: &[Item], hash: gix::hash::Kind) -> Result<Self, Unnamed> {
        let items = items
            .iter()
            .map(|item| Ok((item.id.clone(), Product::from_bytes(&definition(item), hash)?)))
            .collect::<Result<_, Unnamed>>()?;
        Ok(Self { cause, items, pipelines: BTreeMap::new() })
    }

    /// Returns true if these are the items that the entry names, in order of their ids. They are
    /// compared by digest, because one item can be written in many ways.
    pub fn names(&self, items: &[Item]) -> bool {
        let digests = items.iter().map(|item| (&item.id, Digest::compute(&definition(item))));
        self.items.iter().map(|(id, bytes)| (id, bytes.sha256)).eq(digests)
    }
}

/// The fields of `run.concluded`: an outcome recorded by a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

impl RunConcluded {
    /// Returns the conclusion of a rule that could act.
    pub fn new(rule: ItemId, outcome: impl Into<String>) -> Self {
        Self { rule, outcome: outcome.into(), detail: None }
    }
}

/// The origin of added items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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
