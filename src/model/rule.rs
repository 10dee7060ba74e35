//! A rule: on which documents of a run which item is added to it. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Value, json};

use super::digest::Digest;
use super::format;
use super::json;
use super::name::{FilePath, ItemId, fold};
use super::plan::Item;

/// The largest document that a condition looks into, in bytes.
pub const MAX_CONDITION_BYTES: u64 = 16 << 20;

/// How many hex digits of the hash end the id of a created item.
const HASH_DIGITS: usize = 12;

/// A rule of a plan or a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// When it creates an item.
    pub when: When,
    /// What it creates, under the rule's own id until [`Rule::item`] gives it one.
    pub create: Item,
    /// The rule as its author wrote it, which is what the ids of created items are made of.
    pub written: Value,
}

/// What must hold for a rule to create an item.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// Documents that the run must hold.
    pub present: Vec<FilePath>,
    /// Documents that it must not hold.
    pub absent: Vec<FilePath>,
    /// Conditions on what documents say; `if` in JSON.
    pub conditions: Vec<Condition>,
    /// How many items the rule creates in one run at most.
    pub at_most: u64,
}

/// A condition on one value of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The document, which is JSON.
    pub document: FilePath,
    /// Where in it the value is: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// How it is compared.
    pub op: Op,
    /// What it is compared with.
    pub value: Value,
}

/// How a value is compared with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`, of two numbers.
    Less,
    /// `<=`, of two numbers.
    LessOrEqual,
    /// `==`, of any two values; numbers by value.
    Equal,
    /// `!=`: not `==`.
    NotEqual,
    /// `>=`, of two numbers.
    GreaterOrEqual,
    /// `>`, of two numbers.
    Greater,
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
}

impl Rule {
    /// Returns the rule's id, which the ids of its items begin with.
    pub fn id(&self) -> &ItemId {
        &self.create.id
    }

    /// Returns the documents that the rule looks at, each once.
    pub fn documents(&self) -> BTreeSet<&FilePath> {
        let conditions = self.when.conditions.iter().map(|condition| &condition.document);
        self.when.present.iter().chain(&self.when.absent).chain(conditions).collect()
    }

    /// Returns the normalised item that the rule creates where it sees these revisions.
    ///
    /// The id is a hash of the rule and of what it saw, so that whoever applies the rule to the same documents creates the
    /// same item, and never a second one.
    pub fn item(&self, seen: &BTreeMap<FilePath, Seen>) -> Item {
        let documents: serde_json::Map<String, Value> = self
            .documents()
            .into_iter()
            .filter_map(|name| seen.get_key_value(name))
            .map(|(name, seen)| (name.to_string(), json!({ "revision": seen.revision, "sha256": seen.sha256 })))
            .collect();
        let digest = format::digest_of(&json!({ "documents": documents, "rule": self.written }));
        let id = created_id(self.id().as_str(), &digest.hex());
        let id = ItemId::parse(&id).expect("a rule's id leaves room for the hash");
        Item { id, ..self.create.clone() }.normalised()
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
        let mut conditions = vec![Check { holds: false, found: String::new() }; self.when.conditions.len()];
        for (name, places) in on {
            let look = || -> Result<_, E> { Ok(look(read(name)?, places.iter().map(|at| &self.when.conditions[*at]))) };
            let found = seen.contains_key(name).then(look).transpose()?;
            for (nth, at) in places.iter().enumerate() {
                let condition = &self.when.conditions[*at];
                conditions[*at] = match &found {
                    None => Check { holds: false, found: format!("{condition}: {name} is absent") },
                    Some(Ok(found)) => condition.check(found[nth].as_ref()),
                    Some(Err(why)) => Check { holds: false, found: format!("{condition}: {name} {why}") },
                };
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
    Check { holds: seen.is_some() == wanted, found }
}

/// Looks into a document's bytes for what conditions ask of; what two readers could read differently is refused.
fn look<'c>(
    bytes: Option<Vec<u8>>,
    conditions: impl Iterator<Item = &'c Condition>,
) -> Result<Vec<Option<Value>>, String> {
    let bytes = bytes.ok_or_else(|| format!("has more than {MAX_CONDITION_BYTES} bytes"))?;
    let pointers: Vec<&str> = conditions.map(|condition| condition.pointer.as_str()).collect();
    json::look(&bytes, &pointers).ok_or_else(|| "is not plain JSON".to_owned())
}

impl Condition {
    /// Holds what stands at its pointer against the condition.
    fn check(&self, found: Option<&Value>) -> Check {
        let Some(value) = found else {
            return Check { holds: false, found: format!("{self}: there is nothing at {:?}", self.pointer) };
        };
        let held = self.op.holds(value, &self.value);
        let note = if held.is_none() { ", and no number" } else { "" };
        Check { holds: held == Some(true), found: format!("{self}: it is {}{note}", shown(value)) }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} {} {}", self.document, self.pointer, self.op, self.value)
    }
}

impl Op {
    /// Every operator.
    pub const ALL: [Self; 6] =
        [Self::Less, Self::LessOrEqual, Self::Equal, Self::NotEqual, Self::GreaterOrEqual, Self::Greater];

    /// Returns the operator as rules write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::GreaterOrEqual => ">=",
            Self::Greater => ">",
        }
    }

    /// Returns whether it compares numbers only.
    pub fn is_of_numbers(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    /// Compares; none where two numbers are wanted and there are not.
    fn holds(self, value: &Value, literal: &Value) -> Option<bool> {
        let order = value.as_f64().zip(literal.as_f64()).and_then(|(a, b)| a.partial_cmp(&b));
        // Only scalars can equal one, and of those only numbers have two spellings.
        let equal = if value.is_number() { order == Some(Ordering::Equal) } else { value == literal };
        Some(match self {
            Self::Equal => equal,
            Self::NotEqual => !equal,
            Self::Less => order? == Ordering::Less,
            Self::LessOrEqual => order? != Ordering::Greater,
            Self::GreaterOrEqual => order? != Ordering::Less,
            Self::Greater => order? == Ordering::Greater,
        })
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns a value as it is quoted to people: scalars as they are, up to a length.
fn shown(value: &Value) -> String {
    const MOST: usize = 80;
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => {
            let text = scalar.to_string();
            let mut short: String = text.chars().take(MOST).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            short
        }
    }
}
