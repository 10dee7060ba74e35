//! What a kind of anchor is: one file in this room, and its line in [`KINDS`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::model::digest::Digest;
use crate::model::entry::Subject;
use crate::model::name::{RunId, ThreadId};
use crate::model::time::Moment;
use crate::repository::Repository;
use crate::verify::{Answer, Guarantee, Question, Seal, ThreadQuestion, ThreadWord};

use super::git::GitPlace;
use super::rfc3161::Authority;
use super::s3::S3Place;
use super::settings::{SettingError, Settings};
use super::{Error, Means};

/// The kinds that there are.
const KINDS: &[Known] = &[Known::new::<GitPlace>(), Known::new::<S3Place>(), Known::new::<Authority>()];

/// A place outside that holds roots. Each question to it is bounded in time and size, and what it answers is judged by `verify`.
pub(super) trait AnchorKind {
    /// Returns the word for it in the configuration.
    fn word() -> &'static str
    where
        Self: Sized;

    /// Reads the settings that only this kind has; what is left over is an error.
    fn read(settings: &mut Settings<'_>) -> Result<Self, SettingError>
    where
        Self: Sized;

    /// Makes what a person names into settings that mean the same later, and from anywhere.
    fn settle(_repository: &Repository, _settings: &mut BTreeMap<String, String>) -> Result<(), Error>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// Returns where it is, as it may be shown.
    fn shown(&self) -> String;

    /// Returns how strong its word about a root is unless the configuration states it; none where it says when, and nothing more.
    fn claims(&self) -> Option<Guarantee>;

    /// Asks it about a run.
    fn ask(&self, means: &Means, within: Duration, question: &Question<'_>) -> Result<Word, Error>;

    /// Returns what it holds of a key, whatever is here.
    fn holdings(&self, means: &Means, within: Duration, key: &str) -> Result<Holdings, Error>;

    /// Asks it about a thread.
    fn ask_thread(&self, means: &Means, within: Duration, question: &ThreadQuestion<'_>) -> Result<ThreadWord, Error>;

    /// Makes sure that it is what it is said to be, as far as that can be seen without writing to it.
    fn probe(&self, means: &Means, within: Duration) -> Result<(), Error>;

    /// Hands over what it lacks; returns what became of each thing that it is to hold.
    ///
    /// `unsure` is asked about a run or thread before anything is written of it that could never be
    /// taken back.
    fn publish(
        &self,
        means: &Means,
        within: Duration,
        evidence: &Evidence,
        unsure: Unsure<'_>,
    ) -> Result<Vec<Published>, Error>;

    /// Returns the file that says whom to trust about it, if one does.
    fn trust_file(&mut self) -> Option<&mut PathBuf> {
        None
    }
}

/// Reads the settings of a kind.
type Read = fn(&mut Settings<'_>) -> Result<Box<dyn AnchorKind>, SettingError>;

/// Makes what a person names into settings.
type Settle = fn(&Repository, &mut BTreeMap<String, String>) -> Result<(), Error>;

/// A kind, before there is an anchor of it.
pub(super) struct Known {
    word: fn() -> &'static str,
    pub(super) read: Read,
    pub(super) settle: Settle,
}

impl Known {
    const fn new<K: AnchorKind + 'static>() -> Self {
        Self { word: K::word, read: |settings| Ok(Box::new(K::read(settings)?)), settle: K::settle }
    }

    /// Returns the kind of that word.
    pub(super) fn find(word: &str) -> Option<&'static Self> {
        KINDS.iter().find(|known| known.word() == word)
    }

    /// Returns the word for it.
    pub(super) fn word(&self) -> &'static str {
        (self.word)()
    }
}

/// What an anchor answers about a run, and what that is worth.
pub(super) struct Word {
    pub(super) answer: Answer,
    /// How strong it is at most, by what was found.
    pub(super) at_most: Guarantee,
    /// Since when it says so.
    pub(super) since: Option<Moment>,
    /// What else was found.
    pub(super) notes: Vec<String>,
}

impl From<Answer> for Word {
    fn from(answer: Answer) -> Self {
        Self { answer, at_most: Guarantee::ExternalImmutable, since: None, notes: Vec::new() }
    }
}

/// What an anchor holds of one key.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// The runs that it holds.
    pub runs: BTreeSet<RunId>,
    /// The threads that it holds.
    pub threads: BTreeSet<ThreadId>,
    /// Why it may hold more: what of it could not be read to its end.
    pub complaints: BTreeSet<String>,
}

/// A sealed run that anchors are to hold.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The run.
    pub run: RunId,
    /// Its seal.
    pub seal: Seal,
    /// The fingerprint of the key that sealed it.
    pub fingerprint: String,
}

/// What anchors are to hold.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The runs.
    pub sealings: Vec<Sealing>,
    /// The threads of our key.
    pub threads: Vec<ThreadTip>,
}

/// How far a thread went that anchors are to hold.
#[derive(Clone, Debug)]
pub struct ThreadTip {
    /// The thread.
    pub thread: ThreadId,
    /// The number of its entries, as our log says.
    pub entries: u64,
    /// The leaf hash of the last of them.
    pub last: Digest,
    /// The fingerprint of the key that the log belongs to.
    pub fingerprint: String,
    /// The leaf hashes of all entries that are here.
    pub leaves: Vec<Digest>,
}

/// Says why a run or thread must not be published, if it must not.
pub type Unsure<'a> = &'a dyn Fn(&Subject) -> Result<(), Error>;

/// What became of one thing that an anchor is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// `log`, `run`, `thread` or `time stamp`.
    pub kind: &'static str,
    /// The name of the log, run or thread.
    pub name: String,
    /// `new`, `updated`, `up-to-date` or `behind`.
    pub status: &'static str,
}
