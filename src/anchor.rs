//! Anchors: places outside the repository that hold the roots of runs, so that whoever can rewrite a repository and has its
//! key still cannot tell another story.
//!
//! The verifier's own configuration alone says which there are. Each is asked live, within bounds of time and size; what it
//! answers is hostile until it was compared. Nothing that an anchor says is kept.

mod git;
mod settings;

use std::time::Duration;

use crate::clock::Clock;
use crate::git::remote::Reach;
use crate::git::store::Store;
use crate::share::push;
use crate::verify::{Answer, Guarantee, Question, Witness};

pub use settings::{KINDS, SettingError, read};

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
}

/// The kinds of anchors.
pub enum Place {
    /// Another repository that holds the logs.
    Git(git::GitPlace),
}

/// What it takes to reach anything outside.
#[derive(Clone)]
pub struct Means {
    /// The verifier's repository, whose configuration says how others are reached.
    pub store: Store,
    /// How repositories may be reached.
    pub reach: Reach,
    /// Where moments come from.
    pub clock: Clock,
}

impl Anchor {
    /// Returns the word for its kind.
    pub fn kind(&self) -> &'static str {
        match self.place {
            Place::Git(_) => "git",
        }
    }

    /// Returns where it is, as it may be shown.
    pub fn place(&self) -> String {
        match &self.place {
            Place::Git(git) => git.shown(),
        }
    }

    /// Returns how strong its word is at most: of what its kind can give, what the configuration states.
    pub fn guarantee(&self) -> Guarantee {
        match self.place {
            // Whether its host rewrites nothing is what the verifier knows of it, or does not; it cannot be seen from here.
            Place::Git(_) => self.stated.unwrap_or(Guarantee::External),
        }
    }

    /// Asks it about a run.
    pub fn ask(&self, means: &Means, question: &Question<'_>) -> Witness {
        let answer = match &self.place {
            Place::Git(git) => git.ask(&self.patient(means), question),
        };
        Witness {
            anchor: self.name.clone(),
            kind: self.kind(),
            guarantee: self.guarantee(),
            since: None,
            notes: Vec::new(),
            answer: answer.unwrap_or_else(|error| Answer::None(in_a_line(&error))),
        }
    }

    /// Makes sure that it is what it is said to be, as far as that can be seen without writing to it.
    pub fn probe(&self, means: &Means) -> Result<(), Error> {
        match &self.place {
            Place::Git(git) => git.probe(&self.patient(means)),
        }
    }

    /// Hands over what it lacks; returns what became of each thing that it is to hold.
    pub fn publish(&self, means: &Means) -> Result<Vec<Published>, Error> {
        match &self.place {
            Place::Git(git) => git.publish(&self.patient(means)),
        }
    }

    fn patient(&self, means: &Means) -> Means {
        let reach = Reach { within: Some(self.within), prompt: false, ..means.reach.clone() };
        Means { reach, ..means.clone() }
    }
}

/// Asks every one of some anchors about a run.
pub fn ask_all(anchors: &[Anchor], means: &Means, question: &Question<'_>) -> Vec<Witness> {
    anchors.iter().map(|anchor| anchor.ask(means, question)).collect()
}

/// What became of one thing that an anchor is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// `log`.
    pub kind: &'static str,
    /// The name of the log or run.
    pub name: String,
    /// `new`, `updated`, `up-to-date` or `behind`.
    pub status: &'static str,
}

/// Returns an error and what it comes from in one line.
fn in_a_line(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        next = cause.source();
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why an anchor could not be asked or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is this repository itself.
    #[error("{0} is this repository itself, which anchors nothing for itself")]
    Itself(String),
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
