//! A packet: JSON that describes the state of the work for the next agent.

mod age;
mod read;

pub use age::{Age, BadAge};
pub use read::{consumed, may_quote, passages, read_fields, says_consumption};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::time::Moment;
use crate::model::words::words;

/// The required fields, in writing order.
pub const FIELDS: [&str; 8] =
    ["objective", "completed", "unresolved", "assumptions", "next_action", "risks", "updated_at", "resume_token"];

/// The fields that name verifiable facts.
pub const FACT_FIELDS: [&str; 5] = ["branch", "commits", "run", "items", "documents"];

/// The maximum size of a packet, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum length of a list.
pub const MAX_LIST: usize = 500;

words! {
    as_str
    /// The classification of a packet that is not clean.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Unclean {
        /// A person must look first.
        Operational = "operational",
        /// There is nothing to resume from.
        Critical = "critical",
    }
}

impl std::str::FromStr for Unclean {
    type Err = BadClass;

    fn from_str(text: &str) -> Result<Self, BadClass> {
        [Self::Operational, Self::Critical].into_iter().find(|class| class.as_str() == text).ok_or(BadClass)
    }
}

/// Not a classification that can be accepted.
#[derive(Debug, thiserror::Error)]
#[error("it is operational or critical")]
pub struct BadClass;

/// A packet as far as it could be parsed; missing and wrong parts are listed in `faults`.
///
/// Its known fields can be written again.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Packet {
    /// The objective.
    pub objective: Option<String>,
    /// Finished work.
    pub completed: Vec<String>,
    /// Open or blocked work.
    pub unresolved: Vec<String>,
    /// Assumptions.
    pub assumptions: Vec<String>,
    /// First steps.
    pub next_action: Option<String>,
    /// Risks.
    pub risks: Vec<String>,
    /// The time of writing, as given.
    pub updated_at: Option<String>,
    /// The resume token, which allows one resumption.
    pub resume_token: Option<String>,
    /// Verifiable facts.
    #[serde(flatten)]
    pub claims: Claims,
    /// The field that says the token was used or revoked.
    #[serde(skip)]
    pub consumed: Option<String>,
    /// Unknown fields.
    #[serde(skip)]
    pub unknown: Vec<String>,
    /// Missing and wrong parts.
    #[serde(skip)]
    pub faults: Vec<Fault>,
    /// Every text, including keys of unknown objects.
    #[serde(skip)]
    pub passages: Vec<Passage>,
    /// The form of the note.
    #[serde(skip)]
    pub form: Form,
    /// Fields with another name in the note.
    #[serde(skip)]
    pub renamed: Vec<Renamed>,
}

words! {
    as_str
    /// The form of a note.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Form {
        /// One JSON object.
        #[default]
        Json = "JSON",
        /// Markdown with a packet in a fenced block, or a heading for each field.
        Markdown = "Markdown",
    }
}

/// A field with another name in the note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The field.
    pub field: &'static str,
    /// Its names in the note.
    pub from: Vec<String>,
}

/// The facts in a packet; `None` if not mentioned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Claims {
    /// The branch that the packet was written on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Existing commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<Vec<String>>,
    /// An existing run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Items of that run with their statuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<BTreeMap<String, String>>,
    /// Documents of that run, with optional hashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<BTreeMap<String, Option<String>>>,
}

impl Claims {
    /// Returns true if the packet names no facts.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A fault of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the field.
    pub field: String,
    /// The fault, to be read after the field.
    pub what: String,
}

/// A text of the packet and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The path of the value: `risks[0]`.
    pub field: String,
    /// The text.
    pub text: String,
    /// Whether it reports work rather than giving instructions: its fenced code blocks may quote
    /// others.
    pub quotes: bool,
    /// Its first line number.
    pub first_line: usize,
}

impl Passage {
    /// Creates a text without quotations.
    pub fn new(field: &str, text: String) -> Self {
        Self { field: field.into(), text, quotes: false, first_line: 1 }
    }
}

/// The reason why bytes are not a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The reason.
    pub why: String,
    /// The available text, to be checked nevertheless.
    pub passages: Vec<Passage>,
}

impl Unusable {
    /// Creates the error for an oversized packet.
    pub fn too_large() -> Self {
        Self::absent(format!("the packet is larger than {} MiB", MAX_BYTES >> 20))
    }

    /// Creates the error for an empty packet.
    pub fn absent(why: String) -> Self {
        Self { why, passages: Vec::new() }
    }
}

/// A packet to write.
#[derive(Clone, Debug, Serialize)]
pub struct Draft {
    /// The objective.
    pub objective: String,
    /// Finished work; `["none"]` if empty.
    pub completed: Vec<String>,
    /// Open work.
    pub unresolved: Vec<String>,
    /// Assumptions.
    pub assumptions: Vec<String>,
    /// First steps.
    pub next_action: String,
    /// Risks.
    pub risks: Vec<String>,
    /// The time of writing.
    pub updated_at: String,
    /// The resume token, which allows one resumption.
    pub resume_token: String,
    /// The branch that it is written on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Existing commits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Done items of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    /// Documents of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
}

impl Draft {
    /// Returns true if another packet of the same form differs at most in its time, its token and
    /// its list of finished work.
    pub fn has_facts_of(&self, other: &[u8]) -> bool {
        stable_facts(line(self).as_bytes()) == stable_facts(other)
    }
}

/// Returns the fields that do not change by themselves.
fn stable_facts(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut fields: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    fields.retain(|name, _| !matches!(name.as_str(), "updated_at" | "resume_token" | "completed"));
    Some(fields)
}

/// Formats a packet on one line.
pub fn line(packet: &impl Serialize) -> String {
    serde_json::to_string(packet).expect("strings and lists of them can be written")
}

/// Formats a packet for people.
pub fn pretty(packet: &impl Serialize) -> String {
    serde_json::to_string_pretty(packet).expect("strings and lists of them can be written")
}

/// Creates a continuity marker from a name and a date: `handoff-migrate-user-database-20240610`.
///
/// The same name and day give the same marker; `more` distinguishes several.
pub fn marker(name: &str, at: Moment, more: Option<&str>) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::from("handoff");
    for word in words.map(str::to_ascii_lowercase).filter(|word| word != "handoff") {
        // A long word is a fragment, not part of a name.
        if slug.len() + word.len() > 64 {
            break;
        }
        slug = format!("{slug}-{word}");
    }
    let date = at.to_string()[..10].replace('-', "");
    match more {
        Some(more) => format!("{slug}-{date}-{more}"),
        None => format!("{slug}-{date}"),
    }
}
