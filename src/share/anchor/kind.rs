//! The interface of a kind of anchor: one file here, and an arm in [`read`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::entry::Subject;
use crate::model::name::{RunId, ThreadId};
use crate::model::time::Moment;
use crate::repository::Repository;
use crate::verify::{Answer, Guarantee, Question, Seal, ThreadAnswer, ThreadQuestion};

use super::Means;
use super::git::GitPlace;
#[cfg(feature = "anchors")]
use super::program::{self, Program};
#[cfg(feature = "anchors")]
use super::rfc3161::Authority;
#[cfg(feature = "anchors")]
use super::s3::S3Place;
use super::settings::{SettingError, Settings};

/// The kinds that need the feature `anchors`.
const OVER_HTTP: [&str; 2] = ["s3", "rfc3161"];

/// A place outside the repository. Requests have limits of time and size, and `verify` judges the
/// answers.
pub(super) trait AnchorKind {
    /// Returns the name of the kind in the configuration.
    fn kind(&self) -> &str;

    /// Returns the address without secrets.
    fn address(&self) -> String;

    /// Returns the default guarantee, or `None` for a time stamp.
    fn claims(&self) -> Option<Guarantee>;

    /// Asks it about a run.
    fn ask(&self, means: &Means, within: Duration, question: &Question<'_>) -> Result<AnchorAnswer, AnyError>;

    /// Returns the runs and threads that it has for a key.
    fn holdings(&self, means: &Means, within: Duration, key: &str) -> Result<Holdings, AnyError>;

    /// Asks it about a thread.
    fn ask_thread(
        &self,
        means: &Means,
        within: Duration,
        question: &ThreadQuestion<'_>,
    ) -> Result<ThreadAnswer, AnyError>;

    /// Checks its properties as far as possible without writing.
    fn probe(&self, means: &Means, within: Duration) -> Result<(), AnyError>;

    /// Publishes what it lacks; returns the results.
    ///
    /// Calls `unsure` before writing something irrevocable about a run or thread.
    fn publish(
        &self,
        means: &Means,
        within: Duration,
        evidence: &Evidence,
        unsure: Unsure<'_>,
    ) -> Result<Vec<Published>, AnyError>;

    /// Returns its file of trusted certificates, if any.
    fn trust_file(&mut self) -> Option<&mut PathBuf> {
        None
    }
}

/// Parses the settings of a kind of anchor, or returns `None` for an unknown kind without a program
/// in the folders. Unused settings are left to the caller.
pub(super) fn read(
    word: &str,
    settings: &mut Settings<'_>,
    folders: &[PathBuf],
) -> Result<Option<Box<dyn AnchorKind>>, SettingError> {
    Ok(Some(match word {
        "git" => Box::new(GitPlace::read(settings)?),
        #[cfg(feature = "anchors")]
        "s3" => Box::new(S3Place::read(word, Program::own(word, program::S3), settings)?),
        #[cfg(feature = "anchors")]
        "rfc3161" => Box::new(Authority::read(settings)?),
        #[cfg(feature = "anchors")]
        other => match Program::find(other, folders) {
            Some(program) => Box::new(S3Place::read(other, program, settings)?),
            None => return Ok(None),
        },
        #[cfg(not(feature = "anchors"))]
        _ => {
            let _ = folders;
            return Ok(None);
        }
    }))
}

/// Normalises settings, so that they mean the same later and from any folder.
pub(super) fn settle(repository: &Repository, settings: &mut BTreeMap<String, String>) -> Result<(), AnyError> {
    match settings.get("type").map(String::as_str) {
        Some("git") => GitPlace::settle(repository, settings),
        #[cfg(feature = "anchors")]
        Some("rfc3161") => Authority::settle(repository, settings),
        _ => Ok(()),
    }
}

/// Returns true if a build with all features has the kind, and this one lacks it.
pub(super) fn is_left_out(word: &str) -> bool {
    cfg!(not(feature = "anchors")) && OVER_HTTP.contains(&word)
}

/// An anchor's answer about a run, with its strength.
pub(super) struct AnchorAnswer {
    pub(super) answer: Answer,
    /// The maximum guarantee of what was found.
    pub(super) at_most: Guarantee,
    /// The time of the record.
    pub(super) since: Option<Moment>,
    /// Notes.
    pub(super) notes: Vec<String>,
}

impl From<Answer> for AnchorAnswer {
    fn from(answer: Answer) -> Self {
        Self { answer, at_most: Guarantee::ExternalImmutable, since: None, notes: Vec::new() }
    }
}

/// The runs and threads of a key at an anchor.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// The runs that it holds.
    pub runs: BTreeSet<RunId>,
    /// The threads that it holds.
    pub threads: BTreeSet<ThreadId>,
    /// Complaints about data that could not be read.
    pub complaints: BTreeSet<String>,
}

/// A sealed run to publish.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The run.
    pub run: RunId,
    /// Its seal.
    pub seal: Seal,
    /// The fingerprint of the key that sealed it.
    pub fingerprint: String,
}

/// Runs and threads to publish.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The runs.
    pub sealings: Vec<Sealing>,
    /// The threads of our key.
    pub threads: Vec<ThreadTip>,
}

/// A thread to publish, with its length.
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

/// Returns why a run or thread must not be published, if so.
pub type Unsure<'a> = &'a dyn Fn(&Subject) -> Result<(), AnyError>;

/// One result of publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// `log`, `run`, `thread` or `time stamp`.
    pub kind: &'static str,
    /// The name of the log, run or thread.
    pub name: String,
    /// `new`, `updated`, `up-to-date` or `behind`.
    pub status: &'static str,
}
