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

errors! {
    /// Failures to extend a run.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Rewritten(RunId) "not-continuable": "the ref of the run {0:?} was moved to a commit that does not continue it";
    Stranger(RunId, String) "not-continuable": "the run {0:?} cannot be continued: {1}";
    Unreachable { remote: String, #[source] why: Box<remote::Error> } "remote":
        "cannot reach {remote}, through which the run is shared";
    Raced "lost-race" 5: "another driver of the run was first; what was done is kept";
    Unanswered { remote: String, why: String } "remote": "{remote} did not say whether it took the entries: {why}";
    Locked { remote: String, why: String } "lost-race" 5: "{remote} cannot move the run's ref: {why}";
    PushRefused { remote: String, why: String } "push-refused": "{remote} refuses the entries: {why}";
    Poisoned(Box<BadTip>) "not-continuable" 3:
        "{} has the run {:?} at commit {}, which cannot follow {}: {}" [.0.remote, .0.run, .0.commit, .0.good, .0.why];
    Forked(Box<BadTip>) "diverged" 3:
        "{} has another history of the run {:?}: {} there, {} here" [.0.remote, .0.run, .0.commit, .0.good];
    Role { run: RunId, key: String, why: Refused } "no-role": "the key {key}, {why}, cannot do this in the run {run:?}";
    Unjudged(RunId, ItemId, #[source] Unreadable) "altered":
        "cannot seal the run {0:?}: cannot read a document of the rule {1:?}";
    Illegal(#[source] Illegal) "illegal": "the event cannot follow the entries before it";
    #[from] Query(query::Error), Chain(chain::Error), Store(store::Error), Ref(refs::Error), Submit(AnyError),
        Log(log::Error);
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
