//! Shared refs, by kind and name.

use serde::Serialize;

use super::format::{FETCHED_REFS, REFS};
use super::log_name::LogName;
use super::name::{RunId, ThreadId, encode_segment};
use super::words::{schema_of_words, words, written_as_text};

/// The maximum number of refs to fetch from one remote or bundle.
pub const MOST_REFS: usize = 50_000;

words! {
    word
    /// The kind of a ref.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Kind {
        /// The chain of a run.
        Run = "run",
        /// The chain of a thread.
        Thread = "thread",
        /// The repository log of a key.
        Log = "log",
        /// An archive of a key.
        Archive = "archive",
        /// The transcripts of a run: a tree, and not evidence.
        Transcripts = "transcripts",
        /// The time stamps of a run: a tree that only grows.
        Stamps = "time stamps",
        /// The time stamps of a thread, kept like those of a run.
        ThreadStamps = "time stamps",
    }
}
written_as_text!(Kind);
schema_of_words!(Kind: "The kind of a ref.");

/// A shared ref, relative to a folder of refs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Place {
    /// The kind.
    pub kind: Kind,
    /// The decoded name.
    pub name: String,
    #[serde(skip)]
    segment: String,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Run => "runs",
            Self::Thread => "threads",
            Self::Log => "logs",
            Self::Archive => "archives",
            Self::Transcripts => "transcripts",
            Self::Stamps => "stamps",
            Self::ThreadStamps => "thread-stamps",
        }
    }

    /// Returns true for a log or archive, which belongs to a key and is not named by users.
    pub fn is_of_key(self) -> bool {
        matches!(self, Self::Log | Self::Archive)
    }

    /// Returns true for chains, which are append-only.
    pub fn is_chain(self) -> bool {
        !self.is_stamps() && self != Self::Transcripts
    }

    /// Returns true if it is a tree of time stamps.
    pub fn is_stamps(self) -> bool {
        matches!(self, Self::Stamps | Self::ThreadStamps)
    }
}

impl Place {
    /// Parses `runs/<run>` etc., or returns `None` unless it is a canonical name.
    pub fn parse(below: &str) -> Option<Self> {
        let (folder, segment) = below.split_once('/')?;
        let kind = Kind::ALL.into_iter().find(|k| k.folder() == folder)?;
        let name = match kind {
            Kind::Log => LogName::decode(segment)?.to_string(),
            // Every archive is named after an entry.
            Kind::Archive => LogName::decode(segment).filter(LogName::is_further)?.to_string(),
            _ => RunId::decode(segment)?.as_str().to_owned(),
        };
        Some(Self { kind, name, segment: segment.to_owned() })
    }

    /// Splits a fetched ref into the remote, whose name may contain slashes, and the place.
    pub fn fetched(reference: &str) -> Option<(&str, Self)> {
        let rest = reference.strip_prefix(FETCHED_REFS)?;
        let (at, _) = rest.rmatch_indices('/').nth(1)?;
        Some((&rest[..at], Self::parse(&rest[at + 1..])?))
    }

    /// Returns the place of a fetched ref, if of this kind.
    pub fn fetched_of(reference: &str, kind: Kind) -> Option<Self> {
        Self::fetched(reference).map(|(_, place)| place).filter(|place| place.kind == kind)
    }

    /// Returns the place of our own or a fetched ref.
    pub fn of_ref(reference: &str) -> Option<Self> {
        Self::fetched(reference).map(|(_, place)| place).or_else(|| Self::parse(reference.strip_prefix(REFS)?))
    }

    /// Returns true if a ref is a fetched copy of this place.
    pub fn is_fetched_at(&self, reference: &str) -> bool {
        Self::fetched(reference).is_some_and(|(_, place)| place == *self)
    }

    /// Returns true if a ref is in our folder.
    pub(crate) fn is_like_one(below: &str) -> bool {
        below.split_once('/').is_some_and(|(folder, _)| Kind::ALL.into_iter().any(|kind| kind.folder() == folder))
    }

    /// Returns the place of a run.
    pub fn of_run(run: &RunId) -> Self {
        Self { kind: Kind::Run, name: run.as_str().to_owned(), segment: run.encoded() }
    }

    /// Returns the place of the transcripts of a run.
    pub fn of_transcripts(run: &RunId) -> Self {
        Self { kind: Kind::Transcripts, ..Self::of_run(run) }
    }

    /// Returns the place of the time stamps of a run or thread; `None` for another kind.
    pub fn stamps(&self) -> Option<Self> {
        let kind = match self.kind {
            Kind::Run => Kind::Stamps,
            Kind::Thread => Kind::ThreadStamps,
            _ => return None,
        };
        Some(Self { kind, ..self.clone() })
    }

    /// Returns true if what lies here belongs to a run or thread: its time stamps or transcripts.
    pub fn belongs_to(&self, chain: &Self) -> bool {
        let is_transcripts = self.kind == Kind::Transcripts && chain.kind == Kind::Run && self.name == chain.name;
        is_transcripts || chain.stamps().as_ref() == Some(self)
    }

    /// Returns the place of a thread.
    pub fn of_thread(thread: &ThreadId) -> Self {
        Self { kind: Kind::Thread, name: thread.as_str().to_owned(), segment: thread.encoded() }
    }

    /// Returns the place of a log.
    pub fn of_log(log: &LogName) -> Self {
        let name = log.to_string();
        Self { kind: Kind::Log, segment: encode_segment(&name), name }
    }

    /// Returns the ref in a folder, which ends with a slash.
    pub fn below(&self, folder: &str) -> String {
        format!("{folder}{}/{}", self.kind.folder(), self.segment)
    }
}
