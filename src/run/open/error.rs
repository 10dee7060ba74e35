//! Why nothing is recorded on an open run.

use crate::git::race::Lost;
use crate::git::{refs, store};
use crate::ledger::{chain, log};
use crate::model::name::{ItemId, RunId};
use crate::model::role::Refused;
use crate::model::state::Illegal;

use crate::run::stops::Unreadable;
use crate::run::submit;

/// What can go wrong with an open run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such run.
    #[error("there is no run {0:?} here")]
    Unknown(RunId),
    /// The ref holds something else.
    #[error("what the ref of {0:?} holds is not that run")]
    NotARun(RunId),
    /// The sealed plan cannot be read.
    #[error("the plan of the run {0:?} cannot be read")]
    Plan(RunId),
    /// The rules that were sealed with the run cannot be read.
    #[error("the rules of the run {0:?} cannot be read")]
    Rules(RunId),
    /// An item that was added cannot be read.
    #[error("the item {1:?} that was added to the run {0:?} cannot be read")]
    Item(RunId, ItemId),
    /// The entries tell an impossible story.
    #[error("the run {0:?} makes no sense from entry {1} on: {2}")]
    History(RunId, u64, #[source] Illegal),
    /// The ref was moved to something that does not continue what was opened.
    #[error("the ref of the run {0:?} was moved to something that does not continue it")]
    Rewritten(RunId),
    /// Somebody who may not write appended.
    #[error("the run {0:?} cannot be continued: {1}")]
    Stranger(RunId, String),
    /// Our key may not record this.
    #[error("the key {key}, {why}, cannot do this in the run {run:?}")]
    Role {
        /// The run.
        run: RunId,
        /// Our key.
        key: String,
        /// Why.
        why: Refused,
    },
    /// The seal cannot say whether a rule stopped.
    #[error("the run {0:?} is not sealed: a document that the rule {1:?} looks into cannot be read")]
    Unjudged(RunId, ItemId, #[source] Unreadable),
    /// An event does not fit the state.
    #[error("the event does not fit what happened before")]
    Illegal(#[source] Illegal),
    /// The chain could not be read or written.
    #[error(transparent)]
    Chain(#[from] chain::Error),
    /// Objects could not be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A ref could not be read.
    #[error(transparent)]
    Ref(#[from] refs::Error),
    /// What belongs beside the run could not be put in place.
    #[error(transparent)]
    Submit(#[from] submit::Error),
    /// The repository log could not be written.
    #[error(transparent)]
    Log(#[from] log::Error),
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_lost())
    }
}
