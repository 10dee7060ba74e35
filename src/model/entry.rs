//! An entry: one event of the audit chain, as one canonical JSON object.
//!
//! The header's fields and the event's own fields stand side by side in that object. `kind` says which event it is; a field
//! the kind does not have is refused, so that nothing unaccounted for can hide in an entry.

use serde_json::{Map, Value};

use super::digest::Digest;
pub use super::event::{
    Again, Event, Exit, InputRef, ItemDropped, ItemEnded, ItemFired, ItemReconciled, LogSealed, LogSubmitted, Outcome,
    Product, RunEnded, RunSealed, RunSubmitted, Transcript, Verified, VerifiedBy,
};
use super::format::{self, VERSION};
use super::name::RunId;
use super::time::Moment;

/// One event with its place in the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The run that the entry belongs to, or, in a repository log, the run that it is about.
    pub run: RunId,
    /// The position in the chain, from 0 and without gaps.
    pub seq: u64,
    /// When the entry was made; never before the entry before it.
    pub at: Moment,
    /// Who says so: a claim, while the signature is the proof.
    pub actor: String,
    /// The leaf hash of the entry before; absent in entry 0.
    pub prev: Option<Digest>,
    /// Whether `at` comes from a pinned test clock.
    pub pinned: bool,
    /// What happened.
    pub event: Event,
}

impl Entry {
    /// Returns the entry's bytes: RFC 8785 canonical JSON, without a line end.
    pub fn canonical(&self) -> Vec<u8> {
        let Value::Object(mut map) = self.event.fields() else { unreachable!("event fields serialise to an object") };
        map.insert("v".into(), VERSION.into());
        map.insert("kind".into(), self.event.kind().into());
        map.insert("run".into(), self.run.as_str().into());
        map.insert("seq".into(), self.seq.into());
        map.insert("at".into(), self.at.to_string().into());
        map.insert("actor".into(), self.actor.clone().into());
        if let Some(prev) = self.prev {
            map.insert("prev".into(), prev.to_string().into());
        }
        if self.pinned {
            map.insert("clock".into(), "pinned".into());
        }
        format::canonical(&Value::Object(map))
    }

    /// Reads an entry from its canonical bytes.
    ///
    /// Bytes that are not exactly what [`Entry::canonical`] gives back are refused, whatever they mean.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let value: Value = serde_json::from_slice(bytes).map_err(Error::Json)?;
        let Value::Object(mut map) = value else {
            return Err(Error::NotAnObject);
        };
        let version: u64 = take(&mut map, "v")?;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let kind: String = take(&mut map, "kind")?;
        let entry = Self {
            run: take(&mut map, "run")?,
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
        if entry.canonical() != bytes {
            return Err(Error::NotCanonical);
        }
        Ok(entry)
    }

    /// Returns the RFC 6962 leaf hash of the entry's canonical bytes.
    pub fn hash(&self) -> Digest {
        format::leaf_hash(&self.canonical())
    }

    /// Returns the subject line of the entry's commit: `<kind> <item> #<attempt>: <status>`, or `<kind> <run>` for events
    /// that are about a whole run.
    pub fn subject(&self) -> String {
        match (self.event.item(), self.event.shown_status()) {
            (Some((item, attempt)), Some(status)) => {
                format!("{} {item} #{attempt}: {status}", self.event.kind())
            }
            _ => format!("{} {}", self.event.kind(), self.run),
        }
    }
}

fn take<T: serde::de::DeserializeOwned>(map: &mut Map<String, Value>, key: &'static str) -> Result<T, Error> {
    let value = map.remove(key).ok_or(Error::Header(key))?;
    serde_json::from_value(value).map_err(|_| Error::Header(key))
}

/// Why bytes are not an entry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bytes are not JSON.
    #[error("the entry is not JSON: {0}")]
    Json(serde_json::Error),
    /// The JSON is not an object.
    #[error("the entry is not a JSON object")]
    NotAnObject,
    /// The entry was written in another format version.
    #[error("the entry has format version {0}; this program reads version {VERSION}")]
    Version(u64),
    /// A header field is absent or malformed.
    #[error("the entry's field `{0}` is missing or malformed")]
    Header(&'static str),
    /// The kind is not one of this format version.
    #[error("the entry has the unknown kind {0:?}")]
    Kind(String),
    /// The fields are not those of the kind.
    #[error("the fields of the {kind} entry are wrong: {source}")]
    Fields {
        /// The entry's kind.
        kind: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The entry means something, but its bytes are not the canonical ones.
    #[error("the entry is not in canonical form")]
    NotCanonical,
}
