//! The questions to external anchors about a run, and their answers. This module does no I/O.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::Serialize;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::name::RunId;
use crate::model::time::Moment;
use crate::model::words::{schema_of_words, words, written_as_text};

use super::{AskThread, Guarantee, Logs, no_place};

/// A question to an external anchor.
pub struct Question<'a> {
    /// The repository of the run, or `None` for a proof.
    pub store: Option<&'a Store>,
    /// The run.
    pub run: &'a RunId,
    /// The fingerprints of its writers, as entry 0 states them.
    pub writers: &'a [String],
    /// The fingerprints of all known keys. Any of them may have made another run with this id.
    pub known: &'a [String],
    /// The recomputed root over the entries, if the run is sealed.
    pub root: Option<Digest>,
    /// The object format of the run: `sha1` or `sha256`.
    pub object_format: &'a str,
}

impl Question<'_> {
    /// Returns the writers and the known keys, each once.
    pub fn keys(&self) -> BTreeSet<&str> {
        self.writers.iter().chain(self.known).map(String::as_str).collect()
    }
}

/// The seal of a run, as an anchor holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The root.
    pub root: Digest,
    /// The number of entries under the root.
    pub entries: u64,
    /// The leaf hash of the seal entry.
    pub seal: Digest,
    /// The commit of the seal entry.
    pub commit: Oid,
}

/// A seal that an external anchor holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The fingerprint of the key under which it is held.
    pub key: String,
    /// The seal.
    pub seal: Seal,
}

/// The answer of an external anchor, with its properties.
pub struct Witness {
    /// The name in the verifier's configuration.
    pub anchor: String,
    /// The kind, such as `git`.
    pub kind: String,
    /// The strength in the configuration, but at most what was checked.
    pub guarantee: Guarantee,
    /// The time since when it holds its evidence, by its own clock.
    pub since: Option<Moment>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// The answer.
    pub answer: Answer,
}

/// The answer of an external anchor.
pub enum Answer {
    /// Its logs. The logs of keys in the question count, and are checked like local logs.
    Logs(Vec<Rc<Logs>>),
    /// The run's seal under each key; may be empty.
    Seals(Vec<Held>),
    /// The earliest time at which a time-stamping authority saw the root, or the reason why there
    /// is none.
    Time(Result<Moment, String>),
    /// No usable answer, with the reason.
    None(String),
}

/// Asks every configured external anchor.
pub type Ask<'a> = &'a dyn Fn(&Question<'_>) -> Vec<Witness>;

/// Asks no external anchor.
pub fn ask_none(_: &Question<'_>) -> Vec<Witness> {
    Vec::new()
}

/// Asks every configured external anchor about runs and threads.
#[derive(Clone, Copy)]
pub struct AskAnchors<'a> {
    /// About a run.
    pub run: Ask<'a>,
    /// About a thread.
    pub thread: AskThread<'a>,
}

impl AskAnchors<'static> {
    /// Returns functions that ask no external anchor.
    pub fn none() -> Self {
        Self { run: &ask_none, thread: &no_place }
    }
}

/// The logs and anchors to compare a run with.
pub struct AtHand<'a> {
    /// The logs.
    pub logs: &'a Logs,
    /// The external anchors.
    pub ask: Ask<'a>,
    /// Another repository, which may have the base of a run that comes without it.
    pub bases: Option<&'a Store>,
}

impl<'a> AtHand<'a> {
    /// Returns logs without external anchors.
    pub fn logs(logs: &'a Logs) -> Self {
        Self { logs, ask: &ask_none, bases: None }
    }
}

/// The statement of a time-stamping authority about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema), schemars(with = "super::render::TimedShown<'static>"))]
pub struct Timed {
    /// The name in the verifier's configuration.
    pub authority: String,
    /// The earliest time at which it saw the root, or the reason why there is none.
    pub at: Result<Moment, String>,
    /// The contradiction to another date, in a sentence.
    pub contradiction: Option<String>,
}

/// The answer of an anchor about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Anchored {
    /// The name in the verifier's configuration; `local` for the logs at hand.
    pub name: String,
    /// The kind, such as `local` or `git`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The strength.
    pub guarantee: Guarantee,
    /// The state.
    pub standing: Standing,
    /// One line of text.
    pub detail: String,
    /// The time since when it holds the run, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
}

words! {
    as_str
    /// The state of an anchor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Standing {
        /// It holds the run's seal.
        Holds = "holds",
        /// It does not hold the seal.
        Missing = "missing",
        /// It did not answer, or its evidence is incomplete.
        Unreachable = "unreachable",
        /// It holds something else.
        Differs = "differs",
    }
}

written_as_text!(Standing);
schema_of_words!(Standing: "The state of an anchor.");

impl Anchored {
    /// Describes the anchor: `local (detect)`, `vault: s3 (external-immutable)`.
    pub(super) fn label(&self) -> String {
        let guarantee = self.guarantee.as_str();
        match self.kind.as_str() {
            LOCAL => format!("{LOCAL} ({guarantee})"),
            kind => format!("{}: {kind} ({guarantee})", self.name),
        }
    }
}

/// The name and kind of the anchor that always exists: the logs at hand.
pub const LOCAL: &str = "local";
