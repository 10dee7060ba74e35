//! A rule: conditions on documents and items, and the items or outcome that follow. Pure.

pub(crate) mod condition;
mod items;
mod template;
pub mod values;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

pub use condition::{Condition, Op};
pub use items::{Became, ItemCondition, Of, Quantity};
pub use template::{Each, KEY, Made, ROUND, Several, Template};

use super::digest::Digest;
use super::format;
use super::name::{FilePath, ItemId, fold};
use super::plan::Item;
use values::Values;

/// The maximum size of a document for conditions, in bytes.
pub const MAX_CONDITION_BYTES: u64 = 16 << 20;

/// The number of hex digits of the hash in a created item's id.
const HASH_DIGITS: usize = 12;

/// A rule of a plan or a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The id, which is the prefix of the ids of [`Then::One`].
    pub id: ItemId,
    /// The requirements.
    pub when: When,
    /// The effect.
    pub then: Then,
    /// The rule as written; created ids are hashes over it.
    pub written: Value,
}

/// The requirements of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    /// Documents that must exist.
    pub present: Vec<FilePath>,
    /// Documents that must not exist.
    pub absent: Vec<FilePath>,
    /// Conditions on values in documents; `if` in JSON.
    pub conditions: Vec<Condition>,
    /// Conditions on items.
    pub items: Vec<ItemCondition>,
    /// The maximum number of times the rule acts in a run.
    pub at_most: u64,
}

/// The effect of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// Creates one item; its id is a hash of the rule and its input. Until [`Rule::item`] sets it,
    /// the item has the rule's id.
    One(Box<Item>),
    /// Creates items with ids of their own.
    Several(Several),
    /// Records an outcome of the run.
    Outcome(String),
    /// Adds dependencies at submit.
    Order(BTreeMap<ItemId, Vec<ItemId>>),
    /// Makes an item a gate at submit.
    Gate(Gate),
}

/// A gate: an item whose check is a verdict, so a failed check is not retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The item.
    pub item: ItemId,
    /// Whether dependents are skipped if it is red, except those that need one of its outputs.
    pub blocks: bool,
    /// Whether its verdict is a vote, which does not make the run red by itself.
    pub votes: bool,
}

/// The revision of a document that a rule evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The number, from 1.
    pub revision: u64,
    /// The digest of the bytes.
    pub sha256: Digest,
}

/// A requirement of a rule with its result.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Check {
    /// Whether it is met.
    pub holds: bool,
    /// A sentence about the result.
    pub found: String,
    /// Whether the rule has stopped, if nothing else prevents it from acting.
    #[serde(skip)]
    pub stop: Stop,
}

/// The effect of an unmet requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// The requirement is met, or a later entry can meet it: the rule waits.
    No,
    /// The document cannot be compared. The run seals itself nevertheless.
    Unfit,
    /// The rule has acted as often as allowed, or its pointer has no value. The run does not seal
    /// itself.
    Short,
}

impl Check {
    /// Creates a requirement with its result.
    pub fn new(holds: bool, found: String) -> Self {
        Self { holds, found, stop: Stop::No }
    }

    /// Creates a requirement that stops the rule if unmet.
    pub fn or_stop(holds: bool, found: String, stop: Stop) -> Self {
        Self { holds, found, stop: if holds { Stop::No } else { stop } }
    }

    /// Creates a requirement that stops the rule early if unmet.
    pub fn or_short(holds: bool, found: String) -> Self {
        Self::or_stop(holds, found, Stop::Short)
    }
}

impl Rule {
    /// Returns the rule's id.
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the items that it can create, as written.
    pub fn written_items(&self) -> Vec<&Item> {
        match &self.then {
            Then::One(item) => vec![item],
            Then::Several(several) => several.templates().map(|template| &template.item).collect(),
            Then::Outcome(_) | Then::Order(_) | Then::Gate(_) => Vec::new(),
        }
    }

    /// Returns true if it might create an item with this id; may be true for an id that never
    /// occurs.
    pub fn may_create(&self, id: &ItemId, has: impl Fn(&str) -> bool) -> bool {
        match &self.then {
            Then::One(_) => {
                let rest = id.as_str().strip_prefix(self.id.as_str()).and_then(|rest| rest.strip_prefix('-'));
                rest.is_some_and(|hash| hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
            }
            Then::Several(several) => several.made.iter().any(|made| match made {
                Made::Template(template) => template.may_be_called(id),
                Made::Again(_) => {
                    let numbered = id.as_str().rsplit_once('~');
                    numbered.is_some_and(|(base, number)| number.parse::<u64>().is_ok() && has(base))
                }
            }),
            Then::Outcome(_) | Then::Order(_) | Then::Gate(_) => false,
        }
    }

    /// Returns true if it acts only at submit.
    pub fn is_standing(&self) -> bool {
        matches!(self.then, Then::Order(_) | Then::Gate(_))
    }

    /// Returns the distinct documents that the rule evaluates.
    pub fn documents(&self) -> BTreeSet<&FilePath> {
        let conditions = self.when.conditions.iter().map(|condition| &condition.document);
        self.when.present.iter().chain(&self.when.absent).chain(conditions).collect()
    }

    /// Returns the normalised item that [`Then::One`] creates for these revisions; `None` for
    /// others.
    ///
    /// The id is a hash of the rule and its input, so that applying the rule again creates no
    /// second item.
    pub fn item(&self, documents: &BTreeMap<FilePath, Seen>) -> Option<Item> {
        let Then::One(create) = &self.then else { return None };
        let documents: serde_json::Map<String, Value> = self
            .documents()
            .into_iter()
            .filter_map(|name| documents.get_key_value(name))
            .map(|(name, documents)| {
                (name.to_string(), json!({ "revision": documents.revision, "sha256": documents.sha256 }))
            })
            .collect();
        let digest = format::digest_of(&json!({ "documents": documents, "rule": self.written }));
        let id = created_id(self.id().as_str(), &digest.hex());
        let id = ItemId::parse(&id).expect("a rule's id leaves room for the hash");
        Some(Item { id, ..(**create).clone() }.normalised())
    }

    /// Evaluates the requirements on documents, in written order.
    ///
    /// `values` returns what the conditions compare in a document's current revision.
    pub fn checks<E>(
        &self,
        documents: &BTreeMap<FilePath, Seen>,
        mut values: impl FnMut(&FilePath) -> Result<Arc<Values>, E>,
    ) -> Result<Vec<Check>, E> {
        let mut checks = Vec::new();
        for name in &self.when.present {
            checks.push(presence(name, documents.get(name), true));
        }
        for name in &self.when.absent {
            checks.push(presence(name, documents.get(name), false));
        }
        for condition in &self.when.conditions {
            let name = &condition.document;
            checks.push(if documents.contains_key(name) {
                condition.check(&*values(name)?)
            } else {
                Check::new(false, format!("{condition}: {name} is absent"))
            });
        }
        Ok(checks)
    }
}

/// Returns the id of a created item.
fn created_id(rule: &str, hash: &str) -> String {
    format!("{rule}-{}", &hash[..HASH_DIGITS])
}

/// Combines the rules of plan and queue; the error names a duplicate id.
pub fn together(own: &[Rule], added: Vec<Rule>) -> Result<Vec<Rule>, ItemId> {
    match added.iter().find(|rule| own.iter().any(|known| fold(known.id().as_str()) == fold(rule.id().as_str()))) {
        Some(twice) => Err(twice.id().clone()),
        None => Ok(own.iter().cloned().chain(added).collect()),
    }
}

/// Returns true if the id is valid for a rule and its items.
pub(crate) fn check_id(id: &str) -> Result<ItemId, super::name::NameError> {
    ItemId::parse(&created_id(id, "0123456789ab"))?;
    ItemId::parse(id)
}

fn presence(name: &FilePath, latest: Option<&Seen>, expected: bool) -> Check {
    let found = match (latest, expected) {
        (Some(latest), true) => format!("{name} is at revision {}", latest.revision),
        (Some(latest), false) => format!("{name} is at revision {}, and must be absent", latest.revision),
        (None, true) => format!("{name} is absent, and must be present"),
        (None, false) => format!("{name} is absent"),
    };
    Check::new(latest.is_some() == expected, found)
}
