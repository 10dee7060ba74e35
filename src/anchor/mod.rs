//! Anchors: places outside the repository that hold the roots of runs, so that whoever can rewrite a repository and has its
//! key still cannot tell another story.
//!
//! The verifier's own configuration alone says which there are. Each is asked live, within bounds of time and size; what it
//! answers is hostile until it was compared. Nothing that an anchor says is kept.

mod credentials;
pub mod gate;
mod git;
pub mod held;
mod http;
mod rfc3161;
mod s3;
mod settings;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;
use crate::git::remote::Reach;
use crate::git::store::Store;
use crate::model::causes::in_words;
use crate::model::digest::Digest;
use crate::model::name::RunId;
use crate::repository::Repository;
use crate::share::push;
use crate::verify::{self, Answer, Guarantee, Question, Seal, Witness};

pub use credentials::{Environment, Error as CredentialsError};
pub use http::Error as HttpError;
pub use rfc3161::{StampsError, TokenError};
pub use s3::WireError as S3Error;
pub use settings::{SettingError, read};

/// How long one question may take where the configuration does not say it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// One configured anchor.
pub struct Anchor {
    /// Its name in the configuration.
    pub name: String,
    /// How strong it is, as the configuration states it; what its kind gives otherwise.
    pub stated: Option<Guarantee>,
    /// How long one question to it may take.
    pub within: Duration,
    /// What it is.
    pub place: Place,
    /// Why it could not be reached when it was last asked: of many runs, only the first waits for that.
    gave_up: OnceCell<String>,
}

/// The kinds of anchors.
pub enum Place {
    /// Another repository that holds the logs.
    Git(Box<git::GitPlace>),
    /// A bucket that locks what is put there.
    S3(s3::S3Place),
    /// A time-stamping authority.
    Rfc3161(rfc3161::Authority),
}

/// What it takes to reach anything outside.
#[derive(Clone)]
pub struct Means {
    /// The verifier's repository.
    pub store: Store,
    /// How repositories may be reached.
    pub reach: Reach,
    /// The settings of git's that say more of it: those that no file inside the work tree has a say in.
    pub settings: Vec<(String, String)>,
    /// Where moments come from.
    pub clock: Clock,
    /// What the environment says of AWS.
    pub environment: Environment,
}

impl Means {
    /// Returns what the configuration and the environment of a repository say.
    pub fn of(repository: &Repository) -> Self {
        let from = &repository.environment;
        let aws = |(name, value): (&String, &OsString)| {
            Some((name.clone(), value.to_str().filter(|value| !value.is_empty())?.to_owned()))
        };
        let variables = from.variables.iter().filter(|(name, _)| name.starts_with("AWS_")).filter_map(aws).collect();
        Self {
            store: repository.store.clone(),
            reach: repository.reach(),
            settings: repository.config.reaching.clone(),
            clock: from.clock,
            environment: Environment { variables, home: from.variable("HOME").map(PathBuf::from) },
        }
    }
}

impl Anchor {
    /// Returns the word for its kind.
    pub fn kind(&self) -> &'static str {
        match self.place {
            Place::Git(_) => "git",
            Place::S3(_) => "s3",
            Place::Rfc3161(_) => "rfc3161",
        }
    }

    /// Returns where it is, as it may be shown.
    pub fn place(&self) -> String {
        match &self.place {
            Place::Git(git) => git.shown(),
            Place::S3(s3) => s3.shown(),
            Place::Rfc3161(authority) => authority.shown(),
        }
    }

    /// Returns how strong its word is at most: of what its kind can give, what the configuration states.
    pub fn guarantee(&self) -> Guarantee {
        match self.place {
            // Whether its host rewrites nothing is what the verifier knows of it, or does not; it cannot be seen from here.
            Place::Git(_) => self.stated.unwrap_or(Guarantee::External),
            // What the lock makes it is checked at every answer; the configuration can only say less.
            Place::S3(_) => self.stated.unwrap_or(Guarantee::ExternalImmutable),
            // It says when, and nothing more.
            Place::Rfc3161(_) => Guarantee::Detect,
        }
    }

    /// Asks it about a run.
    pub fn ask(&self, means: &Means, question: &Question<'_>) -> Witness {
        let mut witness = Witness {
            anchor: self.name.clone(),
            kind: self.kind(),
            guarantee: self.guarantee(),
            since: None,
            notes: Vec::new(),
            answer: Answer::None(String::new()),
        };
        if let Some(why) = self.gave_up.get() {
            witness.answer = Answer::None(why.clone());
            return witness;
        }
        let answer = match &self.place {
            Place::Git(git) => git.ask(&self.patient(means), question),
            Place::S3(s3) => s3.ask(means, self.within, question).map(|answered| {
                witness.guarantee = witness.guarantee.min(answered.guarantee);
                (witness.since, witness.notes) = (answered.since, answered.notes);
                Answer::Seals(answered.held)
            }),
            Place::Rfc3161(authority) => Ok(Answer::Time(authority.time(question).map_err(|error| in_a_line(&error)))),
        };
        witness.answer = answer.unwrap_or_else(|error| Answer::None(self.give_up(&error)));
        witness
    }

    /// Returns what it holds of a key, whatever is here, or why it does not say so; a time-stamping authority holds nothing.
    pub fn holdings(&self, means: &Means, key: &str) -> Result<Holdings, String> {
        if let Some(why) = self.gave_up.get() {
            return Err(why.clone());
        }
        let holdings = match &self.place {
            Place::Git(git) => git.holdings(&self.patient(means), key),
            Place::S3(s3) => s3.holdings(means, self.within, key),
            Place::Rfc3161(_) => Ok(Holdings::default()),
        };
        holdings.map_err(|error| self.give_up(&error))
    }

    /// Returns why there was no answer; a place that cannot be reached at all is not asked again.
    fn give_up(&self, error: &Error) -> String {
        let why = in_a_line(error);
        if error.is_for_all() {
            self.gave_up.get_or_init(|| why.clone());
        }
        why
    }

    /// Makes sure that it is what it is said to be, as far as that can be seen without writing to it.
    pub fn probe(&self, means: &Means) -> Result<(), Error> {
        match &self.place {
            Place::Git(git) => git.probe(&self.patient(means)),
            Place::S3(s3) => s3.probe(means, self.within),
            Place::Rfc3161(authority) => authority.probe(self.within),
        }
    }

    /// Hands over what it lacks; returns what became of each thing that it is to hold.
    ///
    /// `unsure` is asked about a run before anything is written of it that could never be taken back.
    pub fn publish(&self, means: &Means, sealings: &[Sealing], unsure: Unsure<'_>) -> Result<Vec<Published>, Error> {
        match &self.place {
            Place::Git(git) => git.publish(&self.patient(means)),
            Place::S3(s3) => s3.publish(means, self.within, sealings, unsure),
            Place::Rfc3161(authority) => authority.publish(means, self.within, sealings),
        }
    }

    /// Returns the file that says whom to trust about it, if one does.
    pub fn trust_file(&mut self) -> Option<&mut PathBuf> {
        match &mut self.place {
            Place::Rfc3161(authority) => Some(&mut authority.ca),
            Place::Git(_) | Place::S3(_) => None,
        }
    }

    fn patient(&self, means: &Means) -> Means {
        let reach = Reach { within: Some(self.within), prompt: false, ..means.reach.clone() };
        Means { reach, ..means.clone() }
    }
}

/// What an anchor holds of one key.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// The runs that it holds.
    pub runs: BTreeSet<RunId>,
    /// Why it may hold more: what of it could not be read to its end.
    pub complaints: BTreeSet<String>,
}

/// Asks every one of some anchors about a run.
pub fn ask_all(anchors: &[Anchor], means: &Means, question: &Question<'_>) -> Vec<Witness> {
    anchors.iter().map(|anchor| anchor.ask(means, question)).collect()
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

/// Says why a run must not be published, if it must not.
pub type Unsure<'a> = &'a dyn Fn(&RunId) -> Result<(), Error>;

/// What became of one thing that an anchor is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// `log`, `run` or `time stamp`.
    pub kind: &'static str,
    /// The name of the log or run.
    pub name: String,
    /// `new`, `updated`, `up-to-date` or `behind`.
    pub status: &'static str,
}

/// Returns an error and what it comes from in one line.
fn in_a_line(error: &(dyn std::error::Error + 'static)) -> String {
    in_words(error).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why an anchor could not be asked or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is this repository itself.
    #[error("{0} is this repository itself, which anchors nothing for itself")]
    Itself(String),
    /// It holds another run by this name.
    #[error("it holds the root {} of run {run}, ours is {}; what it holds was there first", .held.short(), .ours.short())]
    Differs {
        /// The run.
        run: RunId,
        /// The root that it holds.
        held: Digest,
        /// Ours.
        ours: Digest,
    },
    /// It took something and does not show it.
    #[error("what was put of run {0} is not there")]
    NotKept(RunId),
    /// What is there is no object of ours.
    #[error("what it holds in the place of the run is not what we write")]
    NotOurs,
    /// What is there is about something else.
    #[error("what it holds in the place of the run is about run {run} of the key {fingerprint}")]
    Elsewhere {
        /// The other run.
        run: RunId,
        /// The other key.
        fingerprint: String,
    },
    /// A run that does not verify is not published.
    #[error("run {0} does not verify: {1}")]
    Unsound(RunId, String),
    /// A run could not be looked at.
    #[error(transparent)]
    Verify(#[from] verify::Error),
    /// It would have to be asked about more keys than it is.
    #[error(
        "there are more than {} keys to be asked about: the run's writers and those in your signers",
        s3::MOST_KEYS
    )]
    TooManyKeys,
    /// There is no seal to be stamped.
    #[error("the run is not sealed")]
    NoRoot,
    /// Nobody got a token.
    #[error("no time stamp is at hand")]
    NoToken,
    /// The CA certificates cannot be read.
    #[error("the CA certificates in {} could not be read", .0.display())]
    Ca(PathBuf, #[source] std::io::Error),
    /// A token proves nothing.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The authority answered something else.
    #[error("it answers with status {0}")]
    Status(u16),
    /// The authority refused.
    #[error("it grants no time stamp (status {0})")]
    Refused(u32),
    /// The token answers another request.
    #[error("its time stamp answers another request")]
    Nonce,
    /// Tokens could not be read or kept.
    #[error(transparent)]
    Stamps(#[from] StampsError),
    /// There was no answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// S3 did not answer as it should.
    #[error(transparent)]
    S3(#[from] s3::WireError),
    /// There are no credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Our logs could not be handed over.
    #[error(transparent)]
    Push(#[from] push::Error),
    /// Another repository could not be dealt with.
    #[error(transparent)]
    Remote(#[from] crate::git::remote::Error),
    /// There was no place to work in.
    #[error(transparent)]
    Scratch(#[from] crate::git::scratch::Error),
    /// A ref could not be made in it.
    #[error(transparent)]
    Ref(#[from] crate::git::refs::Error),
}

impl Error {
    /// Returns whether it says the same of every run: that the place cannot be reached at all.
    fn is_for_all(&self) -> bool {
        let unreachable = |error: &HttpError| matches!(error, HttpError::Late(_) | HttpError::Unreachable(_));
        match self {
            Self::Remote(_) | Self::Scratch(_) | Self::Credentials(_) => true,
            Self::S3(s3::WireError::Http(error)) => unreachable(error),
            _ => false,
        }
    }
}
