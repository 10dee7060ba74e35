//! Errors of an open run.

use crate::git::retry::Lost;
use crate::git::{refs, remote, store};
use crate::ledger::{chain, log};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::hints::{self, Hint};
use crate::model::name::{ItemId, RunId};
use crate::model::role::Refused;
use crate::model::state::Illegal;

use crate::run::query::{self, Unreadable};

/// Failures to extend a run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the ref of the run {0:?} was moved to a commit that does not continue it")]
    Rewritten(RunId),
    #[error("the run {0:?} cannot be continued: {1}")]
    Stranger(RunId, String),
    #[error("cannot reach {remote}, through which the run is shared")]
    Unreachable {
        remote: String,
        #[source]
        why: Box<remote::Error>,
    },
    #[error("another driver of the run was first; what was done is kept")]
    Raced,
    #[error("{remote} did not say whether it took the entries: {why}")]
    Unanswered { remote: String, why: String },
    #[error("{remote} cannot move the run's ref: {why}")]
    Locked { remote: String, why: String },
    #[error("{remote} refuses the entries: {why}")]
    PushRefused { remote: String, why: String },
    #[error("{} has the run {:?} at commit {}, which cannot follow {}: {}", .0.remote, .0.run, .0.commit, .0.good, .0.why)]
    Poisoned(Box<BadTip>),
    #[error("{} has another history of the run {:?}: {} there, {} here", .0.remote, .0.run, .0.commit, .0.good)]
    Forked(Box<BadTip>),
    #[error("the key {key}, {why}, cannot do this in the run {run:?}")]
    Role { run: RunId, key: String, why: Refused },
    #[error("cannot seal the run {0:?}: cannot read a document of the rule {1:?}")]
    Unjudged(RunId, ItemId, #[source] Unreadable),
    #[error("the event cannot follow the entries before it")]
    Illegal(#[source] Illegal),
    #[error("{0}")]
    Query(#[from] query::Error),
    #[error("{0}")]
    Chain(#[from] chain::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("{0}")]
    Ref(#[from] refs::Error),
    #[error("{0}")]
    Submit(#[from] AnyError),
    #[error("{0}")]
    Log(#[from] log::Error),
}

/// A head of a shared run that cannot be followed.
#[derive(Debug)]
pub struct BadTip {
    pub run: RunId,
    pub remote: String,
    /// The commit that cannot follow.
    pub commit: Oid,
    /// The head that the remote has.
    pub tip: Oid,
    /// The last head that could be followed.
    pub good: Oid,
    pub why: String,
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_lost())
    }
}

impl Error {
    /// Returns true if another driver was first.
    pub fn is_raced(&self) -> bool {
        matches!(self, Self::Raced)
    }

    /// Returns the way out of trouble with the remote of a shared run, if a person has to take it.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Poisoned(bad) => Some(hints::set_back(&bad.remote, &bad.run, bad.tip, bad.good)),
            Self::Locked { remote, .. } => Some(hints::remove_lock_there(remote)),
            _ => None,
        }
    }

    /// Returns true if the remote of a shared run did not take the entries now, and may later.
    pub fn is_of_remote(&self) -> bool {
        matches!(
            self,
            Self::Raced
                | Self::Unanswered { .. }
                | Self::Unreachable { .. }
                | Self::Locked { .. }
                | Self::PushRefused { .. }
                | Self::Poisoned(_)
        )
    }
}
