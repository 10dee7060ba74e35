//! An entry: one event of the audit chain, as one canonical JSON object.
//!
//! The fields of header and event stand side by side in that object. `kind` names the event.
//! Unknown fields are refused, so that an entry cannot hide data.

use std::fmt;

use serde_json::{Map, Value};

pub use super::archive::{ArchiveAdded, ArchivedRun};
use super::bounds;
pub use super::claims::Claims;
pub use super::decision::{Decision, ItemDecided, LogDecided};
use super::digest::Digest;
pub use super::document::{DocumentWritten, LogWritten};
pub use super::event::{Again, Event, InputRef, ItemDropped, ItemEnded, ItemFired, Product, RunEnded, RunSealed};
pub use super::extension::{Cause, RunConcluded, RunExtended};
use super::format::{self, VERSION};
use super::json;
use super::log_name::is_fingerprint;
pub use super::log_recorded::LogRecorded;
use super::name::{RunId, ThreadId};
pub use super::outcome::{CheckRun, Exit, Grade, ItemReconciled, Outcome, Transcript, Verified, VerifiedBy};
pub use super::role::{Role, RunAdmitted, RunDismissed};
pub use super::submitted::RunSubmitted;
pub use super::thread::{
    AdoptedFrom, Content, Ignored, Origin, RunTie, SourceCheckpoint, ThreadCheckpointed, ThreadResumed, Worktree,
};
use super::time::Moment;

/// An event with its position in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The owner of the chain, or in a repository log, the subject.
    pub about: Subject,
    /// The position in the chain, from 0 and without gaps.
    pub seq: u64,
    /// The time of the entry; never before the previous one's.
    pub at: Moment,
    /// The actor: a claim. The signature is the proof.
    pub actor: String,
    /// The leaf hash of the previous entry; absent in entry 0.
    pub prev: Option<Digest>,
    /// Whether `at` is from a pinned test clock.
    pub pinned: bool,
    /// The event.
    pub event: Event,
}

/// The subject of an entry; each kind has its own header field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A run; in the field `run`.
    Run(RunId),
    /// A thread; in the field `thread`.
    Thread(ThreadId),
    /// An archive, by the fingerprint of its key; in the field `archive`.
    Archive(String),
}

impl Subject {
    /// Returns the run, if any.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::Thread(_) | Self::Archive(_) => None,
        }
    }

    /// Returns the thread, if any.
    pub fn thread(&self) -> Option<&ThreadId> {
        match self {
            Self::Thread(thread) => Some(thread),
            Self::Run(_) | Self::Archive(_) => None,
        }
    }

    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Run(run) => run.as_str(),
            Self::Thread(thread) => thread.as_str(),
            Self::Archive(key) => key,
        }
    }

    fn field(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Thread(_) => "thread",
            Self::Archive(_) => "archive",
        }
    }

    /// Removes the header field for a kind of entry. A `log.recorded` has `run` or `thread`.
    fn take(map: &mut Map<String, Value>, kind: &str) -> Result<Self, Error> {
        if kind.starts_with("thread.") || (kind == "log.recorded" && !map.contains_key("run")) {
            return Ok(Self::Thread(take(map, "thread")?));
        }
        if !kind.starts_with("archive.") {
            return Ok(Self::Run(take(map, "run")?));
        }
        let key: String = take(map, "archive")?;
        if is_fingerprint(&key) { Ok(Self::Archive(key)) } else { Err(Error::Header("archive")) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<RunId> for Subject {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

impl From<ThreadId> for Subject {
    fn from(thread: ThreadId) -> Self {
        Self::Thread(thread)
    }
}

impl Entry {
    /// Returns the entry's bytes: [`format::entry_text`], without a final newline.
    pub fn canonical(&self) -> Vec<u8> {
        format::entry_text(&self.to_json())
    }

    /// Returns the entry as a JSON object.
    pub fn to_json(&self) -> Value {
        let Value::Object(mut map) = self.event.fields() else { unreachable!("event fields serialise to an object") };
        if matches!(&self.event, Event::DocumentWritten(e) if e.said.is_none()) {
            map.remove("author");
        }
        map.insert("v".into(), VERSION.into());
        map.insert("kind".into(), self.event.kind().into());
        map.insert(self.about.field().into(), self.about.as_str().into());
        map.insert("seq".into(), self.seq.into());
        map.insert("at".into(), self.at.to_string().into());
        map.insert("actor".into(), self.actor.clone().into());
        if let Some(prev) = self.prev {
            map.insert("prev".into(), prev.to_string().into());
        }
        if self.pinned {
            map.insert("clock".into(), "pinned".into());
        }
        Value::Object(map)
    }

    /// Parses an entry from its canonical bytes.
    ///
    /// Fails unless [`Entry::canonical`] returns exactly these bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if !bounds::is_light(bytes) {
            return Err(Error::Heavy);
        }
        let value = json::lenient(bytes).map_err(Error::Json)?;
        if !format::has_safe_numbers(&value) {
            return Err(Error::Number);
        }
        let Value::Object(mut map) = value else {
            return Err(Error::NotAnObject);
        };
        let version: u64 = take(&mut map, "v")?;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let kind: String = take(&mut map, "kind")?;
        let has_author = map.contains_key("author");
        let mut entry = Self {
            about: Subject::take(&mut map, &kind)?,
            seq: take(&mut map, "seq")?,
            at: take(&mut map, "at")?,
            actor: take(&mut map, "actor")?,
            prev: map.contains_key("prev").then(|| take(&mut map, "prev")).transpose()?,
            pinned: match map.remove("clock") {
                None => false,
                Some(clock) if clock == "pinned" => true,
                Some(_) => return Err(Error::Header("clock")),
            },
            event: Event::from_fields(&kind, Value::Object(map))?,
        };
        if let Event::DocumentWritten(e) = &mut entry.event {
            if has_author != e.said.is_some() {
                return Err(Error::Header("author"));
            }
            if !has_author {
                e.author.clone_from(&entry.actor);
            }
        }
        if entry.canonical() != bytes {
            return Err(Error::NotCanonical);
        }
        if let Event::RunAdmitted(e) = &entry.event
            && !e.is_bound()
        {
            return Err(Error::Admission);
        }
        if let Event::ThreadCheckpointed(e) = &entry.event
            && !e.has_legal_origin(entry.seq)
        {
            return Err(Error::Origin);
        }
        if entry.event.made().is_some_and(|made| made >= entry.at) {
            return Err(Error::Made);
        }
        Ok(entry)
    }

    /// Returns the RFC 6962 leaf hash of the entry's canonical bytes.
    pub fn hash(&self) -> Digest {
        format::leaf_hash(&self.canonical())
    }

    /// Returns the subject line of the entry's commit: `<kind> <item> #<attempt>: <status>`,
    /// `<kind> <document> #<revision>`, `<kind> <item>` with the number of further added items,
    /// `<kind> <rule>: <outcome>`, or `<kind> <run or thread>`.
    pub fn subject(&self) -> String {
        if let Event::DocumentWritten(e) = &self.event {
            return format!("{} {} #{}", self.event.kind(), e.name, e.revision);
        }
        if let Event::RunExtended(e) = &self.event
            && let Some(first) = e.items.keys().next()
        {
            let more = e.items.len() - 1;
            let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
            return format!("{} {first}{rest}", self.event.kind());
        }
        if let Event::RunConcluded(e) = &self.event {
            return format!("{} {}: {}", self.event.kind(), e.rule, e.outcome);
        }
        match (self.event.item(), self.event.shown_status()) {
            (Some((item, attempt)), Some(status)) => {
                format!("{} {item} #{attempt}: {status}", self.event.kind())
            }
            _ => format!("{} {}", self.event.kind(), self.about),
        }
    }
}

fn take<T: serde::de::DeserializeOwned>(map: &mut Map<String, Value>, key: &'static str) -> Result<T, Error> {
    let value = map.remove(key).ok_or(Error::Header(key))?;
    serde_json::from_value(value).map_err(|_| Error::Header(key))
}

/// Said of what this version does not know.
const LATER: &str = "; a later version may have written it";

/// Returns what to add about fields that this version does not know.
fn later(source: &serde_json::Error) -> &'static str {
    if source.to_string().starts_with("unknown field") { LATER } else { "" }
}

errors! {
    /// The reason why bytes are not an entry.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Json(serde_json::Error): "the entry is not JSON: {0}";
    Heavy: "the entry has more than {} arrays and objects, or more than {} values" [bounds::CONTAINERS, bounds::VALUES];
    Number: "a number of the entry is no integer within ±(2^53−1)";
    NotAnObject: "the entry is not a JSON object";
    Version(u64): "the entry has format version {0}; this program reads version {VERSION}";
    Header(&'static str): "the entry's field `{0}` is missing or malformed";
    Kind(String): "the entry has the unknown kind {0:?}{LATER}";
    Fields { kind: String, source: serde_json::Error }:
        "the fields of the {kind} entry are wrong: {source}{}" [later(.source)];
    NotCanonical: "the entry is not in canonical form";
    Admission: "`first` belongs to an admission with the role seal, and to no other";
    Origin: "`adopted`, `from` or `to` does not fit the entry's number or state";
    Made: "`made` is not before the time of the entry";
}
