//! A packet: the JSON that says where the work stands, for whoever resumes it.

mod age;
mod read;

pub use age::{Age, BadAge};
pub use read::{consumed, holds_something, may_quote, passages, read_fields, says_consumption};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::time::Moment;

/// The fields that every packet has, in the order in which it is written.
pub const FIELDS: [&str; 8] =
    ["objective", "completed", "unresolved", "assumptions", "next_action", "risks", "updated_at", "resume_token"];

/// The fields by which a packet names things that can be looked up.
pub const FACT_FIELDS: [&str; 4] = ["commits", "run", "items", "documents"];

/// The largest packet that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The most entries of one list.
pub const MAX_LIST: usize = 500;

/// How bad a packet is that is not clean, and how bad a one somebody accepts all the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unclean {
    /// Somebody has to look first.
    Operational,
    /// There is nothing to resume from.
    Critical,
}

impl Unclean {
    /// Returns the word that entries, descriptors and answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operational => "operational",
            Self::Critical => "critical",
        }
    }
}

impl std::str::FromStr for Unclean {
    type Err = BadClass;

    fn from_str(text: &str) -> Result<Self, BadClass> {
        [Self::Operational, Self::Critical].into_iter().find(|class| class.as_str() == text).ok_or(BadClass)
    }
}

/// A word for no class that can be accepted.
#[derive(Debug, thiserror::Error)]
#[error("it is operational or critical")]
pub struct BadClass;

/// A packet as far as it could be read; what is missing or wrong is absent here and stands in `faults`.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// What the work is for.
    pub objective: Option<String>,
    /// What is done.
    pub completed: Vec<String>,
    /// What is open, and what blocks it.
    pub unresolved: Vec<String>,
    /// What was taken for granted.
    pub assumptions: Vec<String>,
    /// What to do first.
    pub next_action: Option<String>,
    /// What may go wrong.
    pub risks: Vec<String>,
    /// When this was written, as it stands there.
    pub updated_at: Option<String>,
    /// The marker that makes one resumption of it.
    pub resume_token: Option<String>,
    /// Things that can be looked up.
    pub claims: Claims,
    /// The field that says the token was used or taken back.
    pub consumed: Option<String>,
    /// Fields that have no meaning here.
    pub unknown: Vec<String>,
    /// What the packet lacks or has wrong.
    pub faults: Vec<Fault>,
    /// Every text in it, keys of unknown objects included.
    pub passages: Vec<Passage>,
    /// The form that it was written in.
    pub form: Form,
    /// Fields that have another name there.
    pub renamed: Vec<Renamed>,
}

/// A form in which people write packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    #[default]
    Json,
    /// One YAML document.
    Yaml,
    /// A note with headings, labels, front matter, or a packet in a fenced block.
    Markdown,
}

impl Form {
    /// Returns what people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Markdown => "Markdown",
        }
    }
}

/// A field that has another name in the note that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The field.
    pub field: &'static str,
    /// The names that it has there.
    pub from: Vec<String>,
}

/// What a packet says of things that can be looked up; `None` where it says nothing of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Commits that exist.
    pub commits: Option<Vec<String>>,
    /// A run that exists.
    pub run: Option<String>,
    /// Items of that run, with the status each has.
    pub items: Option<BTreeMap<String, String>>,
    /// Documents of that run, with the hash of each where one is named.
    pub documents: Option<BTreeMap<String, Option<String>>>,
}

impl Claims {
    /// Returns whether the packet names nothing that can be looked up.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One thing that a field lacks or has wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field, with the place inside it.
    pub field: String,
    /// What is wrong, to be read behind the field.
    pub what: String,
}

/// A text of the packet and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The path of the value: `risks[0]`.
    pub field: String,
    /// The text.
    pub text: String,
    /// Whether it tells of the work, and not what to do: what it holds in fenced code blocks may be other people's words.
    pub quotes: bool,
    /// The number of its first line.
    pub first_line: usize,
}

impl Passage {
    /// Returns a text that quotes nothing.
    pub fn new(field: &str, text: String) -> Self {
        Self { field: field.into(), text, quotes: false, first_line: 1 }
    }
}

/// Why nothing can be resumed from some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The reason, as people read it.
    pub why: String,
    /// What text there is, to be looked through all the same.
    pub passages: Vec<Passage>,
}

impl Unusable {
    /// Says that there are more bytes than a packet may have.
    pub fn too_large() -> Self {
        Self::absent(format!("the packet is larger than {} MiB", MAX_BYTES >> 20))
    }

    /// Says that there is nothing to read.
    pub fn absent(why: String) -> Self {
        Self { why, passages: Vec::new() }
    }
}

/// A packet to be written.
#[derive(Clone, Debug, Serialize)]
pub struct Draft {
    /// What the work is for.
    pub objective: String,
    /// What is done; `["none"]` where nothing is.
    pub completed: Vec<String>,
    /// What is open.
    pub unresolved: Vec<String>,
    /// What was taken for granted.
    pub assumptions: Vec<String>,
    /// What to do first.
    pub next_action: String,
    /// What may go wrong.
    pub risks: Vec<String>,
    /// When it is written.
    pub updated_at: String,
    /// The marker that makes one resumption of it.
    pub resume_token: String,
    /// Commits that exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// The run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Items of the run that are done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    /// Documents of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
}

impl Draft {
    /// Returns the packet on one line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("strings and lists of them can be written")
    }

    /// Returns the packet as people read it.
    pub fn pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and lists of them can be written")
    }
}

/// A packet that was read, as it is written again.
#[derive(Clone, Debug, Serialize)]
pub struct Written<'p> {
    objective: Option<&'p str>,
    completed: &'p [String],
    unresolved: &'p [String],
    assumptions: &'p [String],
    next_action: Option<&'p str>,
    risks: &'p [String],
    updated_at: Option<&'p str>,
    resume_token: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<&'p [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<&'p BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<&'p BTreeMap<String, Option<String>>>,
}

impl<'p> Written<'p> {
    /// Returns the fields of a packet; those that have no meaning here are left out.
    pub fn of(packet: &'p Packet) -> Self {
        Self {
            objective: packet.objective.as_deref(),
            completed: &packet.completed,
            unresolved: &packet.unresolved,
            assumptions: &packet.assumptions,
            next_action: packet.next_action.as_deref(),
            risks: &packet.risks,
            updated_at: packet.updated_at.as_deref(),
            resume_token: packet.resume_token.as_deref(),
            commits: packet.claims.commits.as_deref(),
            run: packet.claims.run.as_deref(),
            items: packet.claims.items.as_ref(),
            documents: packet.claims.documents.as_ref(),
        }
    }

    /// Returns the packet on one line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("strings and lists of them can be written")
    }

    /// Returns the packet as people read it.
    pub fn pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and lists of them can be written")
    }
}

/// Returns a plain continuity marker from a name and a moment: `handoff-migrate-user-database-20240610`.
///
/// The same name on the same day gives the same marker; `more` tells several of a day apart.
pub fn marker(name: &str, at: Moment, more: Option<&str>) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::from("handoff");
    for word in words.map(str::to_ascii_lowercase).filter(|word| word != "handoff") {
        // A long word is no word of a name but something that was cut out of one.
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
