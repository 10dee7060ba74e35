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
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("there is no run {0:?} here")]
    Unknown(RunId),
    #[error("what the ref of {0:?} holds is not that run")]
    NotARun(RunId),
    #[error("the plan of the run {0:?} cannot be read")]
    Plan(RunId),
    #[error("the rules of the run {0:?} cannot be read")]
    Rules(RunId),
    #[error("the item {1:?} that was added to the run {0:?} cannot be read")]
    Item(RunId, ItemId),
    #[error("the run {0:?} makes no sense from entry {1} on: {2}")]
    History(RunId, u64, #[source] Illegal),
    #[error("the ref of the run {0:?} was moved to something that does not continue it")]
    Rewritten(RunId),
    #[error("the run {0:?} cannot be continued: {1}")]
    Stranger(RunId, String),
    #[error("the key {key}, {why}, cannot do this in the run {run:?}")]
    Role { run: RunId, key: String, why: Refused },
    #[error("the run {0:?} is not sealed: a document that the rule {1:?} looks into cannot be read")]
    Unjudged(RunId, ItemId, #[source] Unreadable),
    #[error("the event does not fit what happened before")]
    Illegal(#[source] Illegal),
    #[error(transparent)]
    Chain(#[from] chain::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
    #[error(transparent)]
    Submit(#[from] submit::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_lost())
    }
}
