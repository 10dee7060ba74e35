//! How the items of a run came out, counted. Pure.
//!
//! A **red** item is one that is done and whose check did not pass. That is no status of its own: it follows from the entry that ends
//! the item, and from nothing else.

use std::fmt;

use serde::Serialize;

use super::entry::{Event, ItemReconciled, Outcome};
use super::item_state::Phase;
use super::name::ItemId;

/// How a reason begins that says of a check that it did not pass.
pub const VERIFY_FAILED: &str = "verify-failed: ";

/// How a reason begins that says of a worker's result file that it is not what it is to be.
pub const BAD_RESULT: &str = "bad-result: ";

/// How a reason begins that says of a file that somebody outside of the attempt could still change it when it was to be checked.
pub const STILL_OPEN: &str = "still-open: ";

/// How a reason begins that says of a gate of a pipeline that it did not pass.
pub const GATE_FAILED: &str = "gate-failed: ";

/// How people are told that an item handed over nothing.
pub const NOTHING: &str = "nothing handed over";

/// How many items there are, and how many came out how: each is counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// All of them.
    pub total: u64,
    /// Those that are done, but for the red ones.
    pub done: u64,
    /// Those that are done and whose check did not pass.
    pub red: u64,
    /// Those that failed for good.
    pub failed: u64,
    /// Those that were left out because of others.
    pub skipped: u64,
    /// Those that were cancelled.
    pub cancelled: u64,
    /// Those that wait, ready or not.
    pub pending: u64,
    /// Those that are running.
    pub running: u64,
    /// How many there are besides whose place others took, so that they do not count.
    #[serde(skip_serializing_if = "is_zero")]
    pub superseded: u64,
    /// How many of those that are done, red ones included, handed over nothing although they could have.
    #[serde(rename = "handedOverNothing", skip_serializing_if = "is_zero")]
    pub handed_over_nothing: u64,
    /// What rules had the run say and still holds: then it is not good, however its items came out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The first rule that ended the run before it was good, and why: then the run is not good either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// The other rules that did.
    #[serde(rename = "alsoStopped", skip_serializing_if = "Vec::is_empty")]
    pub also_stopped: Vec<Stopped>,
}

/// A rule that ended a run before it was good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    /// The rule.
    pub rule: ItemId,
    /// Why it stopped, in a sentence, or the word that it made the run say.
    pub reason: String,
}

impl Outcomes {
    /// Counts one item.
    pub fn add(&mut self, phase: Phase, red: bool) {
        let count = match phase {
            Phase::Done if red => &mut self.red,
            Phase::Done => &mut self.done,
            Phase::Failed => &mut self.failed,
            Phase::Skipped => &mut self.skipped,
            Phase::Cancelled => &mut self.cancelled,
            Phase::Waiting => &mut self.pending,
            Phase::Running => &mut self.running,
        };
        *count += 1;
        self.total += 1;
    }

    /// Returns how many items there are of each kind that is not done and green, in the order and the words in which people are told; none
    /// of a kind of which there are none.
    pub fn others(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let others = [
            (self.red, "red"),
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.cancelled, "cancelled"),
            (self.running, "running"),
            (self.pending, "pending"),
            (self.superseded, "superseded"),
        ];
        others.into_iter().filter(|(count, _)| *count > 0)
    }

    /// Returns how many items are done and handed over nothing, in words, or `None` if there is none.
    pub fn empty_handed(&self) -> Option<String> {
        (self.handed_over_nothing > 0).then(|| format!("{} with {NOTHING}", self.handed_over_nothing))
    }

    /// Returns true if every item is done and none is red, no rule had the run say otherwise, and no rule stopped.
    pub fn is_green(&self) -> bool {
        self.are_items_green() && self.said.is_empty() && self.stopped.is_none()
    }

    /// Returns true if every item is done and none is red, whatever rules say.
    pub fn are_items_green(&self) -> bool {
        self.done == self.total
    }

    /// Returns what rules made of the run, each in a few words, or nothing if it is good as far as they say.
    pub fn by_rules(&self) -> impl Iterator<Item = String> + '_ {
        // The words of rules that spoke are known as they are; only the others need their rule and reason.
        let silent = self.said.is_empty();
        let stopped = self.stopped.iter().chain(&self.also_stopped).filter(move |_| silent);
        self.said.iter().cloned().chain(stopped.map(ToString::to_string))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Writes `4 of 6 done, 1 red, 1 failed`.
impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} done", self.done, self.total)?;
        self.others().try_for_each(|(count, what)| write!(f, ", {count} {what}"))?;
        self.by_rules().try_for_each(|words| write!(f, ", {words}"))?;
        self.empty_handed().map_or(Ok(()), |words| write!(f, ", {words}"))
    }
}

/// Writes `rule polish stopped: it created 2 of at most 2`.
impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} stopped: {}", self.rule, self.reason)
    }
}

impl ItemReconciled {
    /// Returns whether the item is done although its check did not pass.
    pub fn is_red(&self) -> bool {
        self.status == Outcome::Done && self.verify.is_some_and(|verify| !verify.passed)
    }
}

impl Event {
    /// Returns whether it ends an item as done although its check did not pass.
    pub fn is_red(&self) -> bool {
        match self {
            Self::ItemReconciled(e) => e.is_red(),
            Self::ItemDecided(e) => e.is_red(),
            _ => false,
        }
    }
}
