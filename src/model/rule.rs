//! A rule: on what became of a run's documents and items which items are added to it, or what is recorded of it. Pure.

pub(crate) mod condition;
mod items;
mod template;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

pub use condition::{Condition, Op};
pub use items::{Became, ItemCondition, Of, What};
pub use template::{Each, KEY, Made, ROUND, Several, Template};

use super::digest::Digest;
use super::format;
use super::name::{FilePath, ItemId, fold};
use super::plan::Item;

/// The largest document that a condition looks into, in bytes.
pub const MAX_CONDITION_BYTES: u64 = 16 << 20;

/// How many hex digits of the hash end the id of a created item.
const HASH_DIGITS: usize = 12;

/// A rule of a plan or a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its id, which the ids of the items of [`Then::One`] begin with.
    pub id: ItemId,
    /// When it does something.
    pub when: When,
    /// What it does.
    pub then: Then,
    /// The rule as its author wrote it, which is what the ids of created items are made of.
    pub written: Value,
}

/// What must hold for a rule to do something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct When {
    /// Documents that the run must hold.
    pub present: Vec<FilePath>,
    /// Documents that it must not hold.
    pub absent: Vec<FilePath>,
    /// Conditions on what documents say; `if` in JSON.
    pub conditions: Vec<Condition>,
    /// Conditions on what became of items.
    pub items: Vec<ItemCondition>,
    /// How often the rule does it in one run at most.
    pub at_most: u64,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// It creates one item, whose id is made of the rule's and of what the rule saw. Until [`Rule::item`] gives it that, it has the rule's.
    One(Box<Item>),
    /// It creates items under ids of their own.
    Several(Several),
    /// It has the run say what came of it, in a word.
    Outcome(String),
    /// From the beginning items wait for others, besides those that the plan names.
    Order(BTreeMap<ItemId, Vec<ItemId>>),
    /// From the beginning an item is a gate.
    Gate(Gate),
}

/// An item whose check is a verdict: it is never tried again because its check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The item.
    pub item: ItemId,
    /// Whether what depends on it is lost where it is red. What needs one of its outputs, which say why, goes on.
    pub blocks: bool,
    /// Whether its verdict is a vote: others count it, and that it is red does not count by itself.
    pub votes: bool,
}

/// The revision of a document that a rule saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number, from 1.
    pub revision: u64,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// One requirement of a rule, and whether it is met.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// Whether it is met.
    pub holds: bool,
    /// A sentence for people about what was found.
    pub found: String,
    /// Whether it says that the rule stopped, if nothing else keeps the rule from doing something.
    #[serde(skip)]
    pub stop: Stop,
}

/// Says whether a requirement that is not met stops its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// The requirement is met, or another entry can still meet it: the rule waits.
    No,
    /// The document cannot be compared as the rule asks. The run seals itself nevertheless.
    Unfit,
    /// The rule did as much as it may, or its pointer leads nowhere. The run does not seal itself.
    Short,
}

impl Check {
    /// A requirement that is met or not.
    pub fn new(holds: bool, found: String) -> Self {
        Self { holds, found, stop: Stop::No }
    }

    /// One that, not met, says that the rule stopped.
    pub fn or_stop(holds: bool, found: String, stop: Stop) -> Self {
        Self { holds, found, stop: if holds { Stop::No } else { stop } }
    }

    /// One that, not met, says that the rule stopped short.
    pub fn or_short(holds: bool, found: String) -> Self {
        Self::or_stop(holds, found, Stop::Short)
    }
}

impl Rule {
    /// Returns the rule's id.
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    /// Returns the items that it may create, as they are written.
    pub fn written_items(&self) -> Vec<&Item> {
        match &self.then {
            Then::One(item) => vec![item],
            Then::Several(several) => several.templates().map(|template| &template.item).collect(),
            Then::Outcome(_) | Then::Order(_) | Then::Gate(_) => Vec::new(),
        }
    }

    /// Returns whether it may create an item of this id in a run that has such items; it may say so of an id that it does not come to.
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

    /// Returns whether it never does anything after submit.
    pub fn is_standing(&self) -> bool {
        matches!(self.then, Then::Order(_) | Then::Gate(_))
    }

    /// Returns the documents that the rule looks at, each once.
    pub fn documents(&self) -> BTreeSet<&FilePath> {
        let conditions = self.when.conditions.iter().map(|condition| &condition.document);
        self.when.present.iter().chain(&self.when.absent).chain(conditions).collect()
    }

    /// Returns the normalised item that a rule of [`Then::One`] creates where it sees these revisions; none of another.
    ///
    /// The id is a hash of the rule and of what it saw, so that whoever applies the rule to the same documents creates the
    /// same item, and never a second one.
    pub fn item(&self, seen: &BTreeMap<FilePath, Seen>) -> Option<Item> {
        let Then::One(create) = &self.then else { return None };
        let documents: serde_json::Map<String, Value> = self
            .documents()
            .into_iter()
            .filter_map(|name| seen.get_key_value(name))
            .map(|(name, seen)| (name.to_string(), json!({ "revision": seen.revision, "sha256": seen.sha256 })))
            .collect();
        let digest = format::digest_of(&json!({ "documents": documents, "rule": self.written }));
        let id = created_id(self.id().as_str(), &digest.hex());
        let id = ItemId::parse(&id).expect("a rule's id leaves room for the hash");
        Some(Item { id, ..(**create).clone() }.normalised())
    }

    /// Holds the documents against the rule: every requirement in the order in which it is written, met or not.
    ///
    /// `read` gives the bytes of a document's current revision, or none where it is too large to be looked into.
    pub fn checks<E>(
        &self,
        seen: &BTreeMap<FilePath, Seen>,
        mut read: impl FnMut(&FilePath) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Vec<Check>, E> {
        let mut checks = Vec::new();
        for name in &self.when.present {
            checks.push(presence(name, seen.get(name), true));
        }
        for name in &self.when.absent {
            checks.push(presence(name, seen.get(name), false));
        }
        // Each document is looked into once, for all conditions on it, and none is held while another is.
        let mut on: BTreeMap<&FilePath, Vec<usize>> = BTreeMap::new();
        for (at, condition) in self.when.conditions.iter().enumerate() {
            on.entry(&condition.document).or_default().push(at);
        }
        let mut conditions = vec![Check::new(false, String::new()); self.when.conditions.len()];
        for (name, places) in on {
            let asked: Vec<&Condition> = places.iter().map(|at| &self.when.conditions[*at]).collect();
            let absent = |condition: &&Condition| Check::new(false, format!("{condition}: {name} is absent"));
            let held = if seen.contains_key(name) {
                condition::checks(read(name)?.as_deref(), &asked)
            } else {
                asked.iter().map(absent).collect()
            };
            for (at, check) in places.into_iter().zip(held) {
                conditions[at] = check;
            }
        }
        checks.extend(conditions);
        Ok(checks)
    }
}

/// Returns the id of an item that a rule creates.
fn created_id(rule: &str, hash: &str) -> String {
    format!("{rule}-{}", &hash[..HASH_DIGITS])
}

/// Puts the rules of a plan and those that its queue adds together; an error names an id that both have.
pub fn together(own: &[Rule], added: Vec<Rule>) -> Result<Vec<Rule>, ItemId> {
    let taken = |rule: &&Rule| own.iter().any(|known| fold(known.id().as_str()) == fold(rule.id().as_str()));
    match added.iter().find(taken) {
        Some(twice) => Err(twice.id().clone()),
        None => Ok(own.iter().cloned().chain(added).collect()),
    }
}

/// Returns whether a rule can have this id, which is whether its items can.
pub(crate) fn check_id(id: &str) -> Result<ItemId, super::name::NameError> {
    ItemId::parse(&created_id(id, "0123456789ab"))?;
    ItemId::parse(id)
}

fn presence(name: &FilePath, seen: Option<&Seen>, wanted: bool) -> Check {
    let found = match (seen, wanted) {
        (Some(seen), true) => format!("{name} is at revision {}", seen.revision),
        (Some(seen), false) => format!("{name} is at revision {}, and must be absent", seen.revision),
        (None, true) => format!("{name} is absent, and must be present"),
        (None, false) => format!("{name} is absent"),
    };
    Check::new(seen.is_some() == wanted, found)
}
