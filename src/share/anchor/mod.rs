//! Anchors: places outside the repository that store the roots of runs, so that a rewritten
//! repository is detected even if its key was used.
//!
//! Only the verifier's own configuration names anchors. Each is asked live, with limits of time and
//! size. Its answers are untrusted until compared, and not stored.

pub mod answers;
pub mod gate;
mod git;
mod kind;
pub mod missing_runs;
pub mod operations;
#[cfg(feature = "anchors")]
mod program;
#[cfg(feature = "anchors")]
mod rfc3161;
#[cfg(feature = "anchors")]
pub(crate) mod s3;
mod settings;
pub mod threads;
pub mod verification;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::git::remote::{self, Reach};
use crate::git::scratch_repo;
use crate::git::store::Store;
use crate::ledger::chain::Writer;
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::Digest;
use crate::model::entry::Subject;
use crate::model::name::{RunId, ThreadId};
use crate::repository::Repository;
use crate::verify::{Answer, Guarantee, Question, ThreadQuestion, ThreadWitness, Witness};

use kind::{AnchorAnswer, AnchorKind};
pub use kind::{Evidence, Holdings, Published, Sealing, ThreadTip, Unsure};
pub use settings::{SettingError, read};
#[cfg(feature = "anchors")]
pub use {
    program::Error as ProgramError,
    rfc3161::{StampsError, TokenError},
    s3::{SKEWED as S3_SKEWED, WireError as S3Error},
};

/// The default time limit of a request.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The word in place of a guarantee for a time stamp.
pub const TIME: &str = "time";

/// A configured anchor.
pub struct Anchor {
    /// Its name in the configuration.
    pub name: String,
    /// The configured guarantee; the default depends on the kind.
    pub stated: Option<Guarantee>,
    /// The time limit of a request.
    pub within: Duration,
    /// The implementation.
    place: Box<dyn AnchorKind>,
    /// The reason why it was unreachable; then it is not asked again.
    gave_up: OnceCell<String>,
}

/// The means to reach anchors.
#[derive(Clone)]
pub struct Means {
    /// The verifier's repository.
    pub store: Store,
    /// How repositories may be reached.
    pub reach: Reach,
    /// git's settings for remotes, without those from the work tree.
    pub settings: Vec<(String, String)>,
    /// The clock.
    pub clock: Clock,
    /// The environment of programs that send requests.
    pub variables: Arc<BTreeMap<String, OsString>>,
    /// The writer of logs, for publishing.
    pub writer: Option<Writer>,
}

impl Means {
    /// Creates the means from a repository's configuration and environment.
    pub fn from_repository(repository: &Repository) -> Self {
        Self {
            store: repository.store.clone(),
            reach: repository.reach(),
            settings: repository.config.reaching.clone(),
            clock: repository.environment.clock,
            variables: repository.environment.variables.clone(),
            writer: None,
        }
    }
}

impl Anchor {
    /// Returns the name of its kind.
    pub fn kind(&self) -> &str {
        self.place.kind()
    }

    /// Returns the address without secrets.
    pub fn place(&self) -> String {
        self.place.address()
    }

    /// Returns the maximum guarantee: as configured, else by kind.
    pub fn guarantee(&self) -> Guarantee {
        self.stated.or_else(|| self.place.claims()).unwrap_or(Guarantee::Detect)
    }

    /// Returns the guarantee, or the word for a time stamp.
    pub fn strength(&self) -> &'static str {
        if self.place.claims().is_some() { self.guarantee().as_str() } else { TIME }
    }

    /// Asks it about a run.
    pub fn ask(&self, means: &Means, question: &Question<'_>) -> Witness {
        let mut witness = Witness {
            anchor: self.name.clone(),
            kind: self.kind().to_owned(),
            guarantee: self.guarantee(),
            since: None,
            notes: Vec::new(),
            answer: Answer::None(String::new()),
        };
        if let Some(why) = self.gave_up.get() {
            witness.answer = Answer::None(why.clone());
            return witness;
        }
        match self.place.ask(means, self.within, question) {
            Ok(AnchorAnswer { answer, at_most, since, notes }) => {
                Witness { guarantee: witness.guarantee.min(at_most), answer, since, notes, ..witness }
            }
            Err(error) => Witness { answer: Answer::None(self.give_up(&error)), ..witness },
        }
    }

    /// Returns the runs and threads that it has for a key, or why it cannot list them; empty for a
    /// time-stamping authority.
    pub fn holdings(&self, means: &Means, key: &str) -> Result<Holdings, String> {
        if let Some(why) = self.gave_up.get() {
            return Err(why.clone());
        }
        self.place.holdings(means, self.within, key).map_err(|error| self.give_up(&error))
    }

    /// Asks it about a thread.
    pub fn ask_thread(&self, means: &Means, question: &ThreadQuestion<'_>) -> ThreadWitness {
        let answer = match self.gave_up.get() {
            Some(why) => Err(why.clone()),
            None => self.place.ask_thread(means, self.within, question).map_err(|error| self.give_up(&error)),
        };
        let guarantee = self.place.claims().map(|_| self.guarantee());
        ThreadWitness { anchor: self.name.clone(), kind: self.kind().to_owned(), guarantee, answer }
    }

    /// Returns the reason for a missing answer; an unreachable anchor is not asked again.
    fn give_up(&self, error: &AnyError) -> String {
        let why = in_a_line(&**error);
        if is_for_all(error) {
            self.gave_up.get_or_init(|| why.clone());
        }
        why
    }

    /// Checks its properties as far as possible without writing.
    pub fn probe(&self, means: &Means) -> Result<(), AnyError> {
        self.place.probe(means, self.within)
    }

    /// Publishes what it lacks; returns the results.
    ///
    /// Calls `unsure` before writing something irrevocable about a run or thread.
    pub fn publish(&self, means: &Means, evidence: &Evidence, unsure: Unsure<'_>) -> Result<Vec<Published>, AnyError> {
        self.place.publish(means, self.within, evidence, unsure)
    }

    /// Returns its file of trusted certificates, if any.
    pub fn trust_file(&mut self) -> Option<&mut PathBuf> {
        self.place.trust_file()
    }
}

/// Asks several anchors about a run.
pub fn ask_all(anchors: &[Anchor], means: &Means, question: &Question<'_>) -> Vec<Witness> {
    anchors.iter().map(|anchor| anchor.ask(means, question)).collect()
}

/// Asks several anchors about a thread.
pub fn ask_all_of_thread(anchors: &[Anchor], means: &Means, question: &ThreadQuestion<'_>) -> Vec<ThreadWitness> {
    anchors.iter().map(|anchor| anchor.ask_thread(means, question)).collect()
}

/// Formats a run or thread for a message.
fn describe(subject: &Subject) -> String {
    match subject {
        Subject::Run(run) => format!("run {run}"),
        Subject::Thread(thread) => format!("thread {thread}"),
        Subject::Archive(key) => format!("archive {key}"),
    }
}

/// Formats an error with its causes on one line.
fn in_a_line(error: &(dyn std::error::Error + 'static)) -> String {
    in_words(error).split_whitespace().collect::<Vec<_>>().join(" ")
}

errors! {
    /// An error while asking or writing an anchor.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Push(#[source] AnyError): "{0}";
    Itself(String) "anchor-itself": "{0} is this repository itself, which anchors nothing for itself";
    Differs { run: RunId, stored: Digest, ours: Digest } "anchor-differs" 3:
        "it holds the root {} of run {run}, ours is {}; what it holds was there first" [.stored.short(), .ours.short()];
    DiffersOnThread { thread: ThreadId, entries: u64 } "anchor-differs" 3:
        "it holds another entry {} of thread {thread}; what it holds was there first" [.entries.saturating_sub(1)];
    NotKept(Subject) "s3": "what was put of {} is not there" [describe(.0)];
    NotLocked(Subject, String) "no-object-lock":
        "what was put of {what} can be taken away again: {1}" [what = describe(.0)];
    Unreadable { path: PathBuf, source: std::io::Error } "io": "{} could not be read" [path.display()];
    NotOurs(&'static str) "anchor-differs" 3: "what it holds in the place of the {0} is not what we write";
    Elsewhere { run: RunId, fingerprint: String } "anchor-differs" 3:
        "what it holds in the place of the run is about run {run} of the key {fingerprint}";
    ThreadElsewhere { expected: u64, thread: ThreadId, entries: u64, fingerprint: String } "anchor-differs" 3:
        "what it holds in the place of {expected} entries of the thread is about {entries} entries of thread {thread} \
         of the key {fingerprint}";
    Unsound(Subject, String) "not-intact" 3: "{what} does not verify: {1}" [what = describe(.0)];
    TooManyKeys(usize) "s3":
        "there are more than {0} keys to be asked about: the run's writers and those in your signers";
    NoRoot "time-stamp": "the run is not sealed";
    NoToken "time-stamp": "no time stamp is at hand";
    Ca(PathBuf, #[source] std::io::Error) "bad-ca": "the CA certificates in {} could not be read" [.0.display()];
    Status(u16, String) "time-stamp": "it answers with status {0}: {1}";
    NoStamp(String) "time-stamp": "the answer is no time stamp: {0}";
    Refused(u32) "time-stamp": "it grants no time stamp (status {0})";
    Nonce "time-stamp": "its time stamp answers another request";
}

/// Returns true if the place is unreachable, regardless of the run.
fn is_for_all(error: &AnyError) -> bool {
    #[cfg(feature = "anchors")]
    if let Some(S3Error::Program(error)) = error.downcast_ref() {
        return error.is_for_all();
    }
    error.is::<remote::Error>() || error.is::<scratch_repo::Error>()
}
