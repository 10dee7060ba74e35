//! What places outside the repository are asked about a run, and what they answer. Nothing is asked here.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::LogSealed;
use crate::model::name::RunId;
use crate::model::time::Moment;

use super::{Guarantee, Logs};

/// What a place outside is asked about.
pub struct Question<'a> {
    /// Where the run lies; of a proof, nowhere.
    pub store: Option<&'a Store>,
    /// The run.
    pub run: &'a RunId,
    /// The fingerprints of its writers, as entry 0 says.
    pub writers: &'a [String],
    /// Those of all keys that the verifier knows: any of them may have made another run of this name.
    pub known: &'a [String],
    /// The root over its entries, recomputed; none for a run that is not sealed.
    pub root: Option<Digest>,
    /// How git names objects where the run lies: `sha1` or `sha256`.
    pub object_format: &'a str,
}

impl Question<'_> {
    /// Returns the keys that are asked about, each once: the run's writers, and all that the verifier knows.
    pub fn keys(&self) -> BTreeSet<&str> {
        self.writers.iter().chain(self.known).map(String::as_str).collect()
    }
}

/// What a place outside holds of a run's seal.
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

impl From<&LogSealed> for Seal {
    fn from(&LogSealed { root, entries, seal, commit, .. }: &LogSealed) -> Self {
        Self { root, entries, seal, commit }
    }
}

/// A seal that a place outside holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The fingerprint of the key under which it is held.
    pub key: String,
    /// The seal.
    pub seal: Seal,
}

/// What a place outside answered.
pub struct Witness {
    /// The name that the verifier's configuration gives to it.
    pub anchor: String,
    /// What kind of place it is: `git`, `s3`, `rfc3161`.
    pub kind: &'static str,
    /// How strong its word is: as the verifier's configuration states it, and not more than was checked.
    pub guarantee: Guarantee,
    /// Since when it holds what it holds, by its own clock.
    pub since: Option<Moment>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Its word.
    pub answer: Answer,
}

/// The word of a place outside.
pub enum Answer {
    /// The logs that lie there; those of the keys that were asked about count, each read and checked like one that lies here.
    Logs(Vec<Rc<Logs>>),
    /// What it holds of the run's seal under each of these keys, perhaps nothing.
    Seals(Vec<Held>),
    /// When the root was there at the latest, by a time-stamping authority's word; or why nothing says so.
    Time(Result<Moment, String>),
    /// It could not be asked, or gave no answer that can be understood.
    None(String),
}

/// Asks every place outside that the verifier configured.
pub type Ask<'a> = &'a dyn Fn(&Question<'_>) -> Vec<Witness>;

/// Asks nobody outside.
pub fn nobody(_: &Question<'_>) -> Vec<Witness> {
    Vec::new()
}

/// What a run is held against besides itself.
pub struct AtHand<'a> {
    /// The logs.
    pub logs: &'a Logs,
    /// The places outside.
    pub ask: Ask<'a>,
}

impl<'a> AtHand<'a> {
    /// Logs alone, without any place outside.
    pub fn logs(logs: &'a Logs) -> Self {
        Self { logs, ask: &nobody }
    }
}

/// What a time-stamping authority says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Its name in the verifier's configuration.
    pub authority: String,
    /// When the run's root was there at the latest; or why nothing says so.
    pub at: Result<Moment, String>,
    /// What that time contradicts, in a sentence.
    pub contradiction: Option<String>,
}

/// How an anchor stands to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchored {
    /// Its name in the verifier's configuration; `local` for the logs at hand.
    pub name: String,
    /// What kind of place it is: `local`, `git`, `s3`.
    pub kind: &'static str,
    /// How strong its word is.
    pub guarantee: Guarantee,
    /// What it says.
    pub standing: Standing,
    /// One line for people.
    pub detail: String,
    /// Since when it holds the run, by its own clock.
    pub since: Option<Moment>,
}

/// What an anchor says of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds the run's seal, and the same one.
    Holds,
    /// It does not hold the seal.
    Missing,
    /// It could not be asked, or what it holds could not be read to its end.
    Unreachable,
    /// It holds something else.
    Differs,
}

impl Standing {
    /// Returns the word that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Missing => "missing",
            Self::Unreachable => "unreachable",
            Self::Differs => "differs",
        }
    }
}

impl Anchored {
    /// Returns the anchor in a few words: `local (detect)`, `vault: s3 (external-immutable)`.
    pub(super) fn label(&self) -> String {
        let guarantee = self.guarantee.as_str();
        match self.kind {
            LOCAL => format!("{LOCAL} ({guarantee})"),
            kind => format!("{}: {kind} ({guarantee})", self.name),
        }
    }
}

/// The name and the kind of the anchor that is always there: the logs at hand.
pub const LOCAL: &str = "local";
