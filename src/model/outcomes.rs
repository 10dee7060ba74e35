//! Counts of a run's items by result. Pure.
//!
//! A **red** item is done, but its check failed. This is not a separate status; it follows from the
//! entry that ends the item.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::entry::{Event, Grade, ItemReconciled, Outcome, VerifiedBy};
use super::item_state::Phase;
use super::name::ItemId;

/// The prefix of a reason for a failed check.
pub const VERIFY_FAILED: &str = "verify-failed: ";

/// The prefix of a reason for an invalid result file.
pub const BAD_RESULT: &str = "bad-result: ";

/// The prefix of a reason for a failed gate of a pipeline.
pub const GATE_FAILED: &str = "gate-failed: ";

/// The text for an item without products.
pub const NOTHING: &str = "nothing handed over";

/// The text for items that take commits that were made before.
pub const CLAIMED: &str = "claimed";

/// The number of items by result; each counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Outcomes {
    /// All.
    pub total: u64,
    /// Done and not red.
    pub done: u64,
    /// Red.
    pub red: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped.
    pub skipped: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Waiting, ready or not.
    pub pending: u64,
    /// Running.
    pub running: u64,
    /// Replaced by others; not counted otherwise.
    #[serde(skip_serializing_if = "is_zero")]
    pub superseded: u64,
    /// Done, including red, without products although they could have some; absent if 0.
    #[serde(rename = "handedOverNothing", skip_serializing_if = "is_zero")]
    pub handed_over_nothing: u64,
    /// Done by a commit that was made before; counted in `done` as well; absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub claimed: u64,
    /// Outcomes recorded by rules and still valid: the run is then not good; absent if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The first rule that stopped the run early, with the reason: the run is then not good; absent
    /// if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// The other rules that stopped the run early; absent if there are none.
    #[serde(rename = "alsoStopped", skip_serializing_if = "Vec::is_empty")]
    pub also_stopped: Vec<Stopped>,
}

/// A rule that stopped a run early.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Stopped {
    /// The rule.
    pub rule: ItemId,
    /// The reason, or the recorded outcome.
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

    /// Returns the non-zero numbers of items that are not done and green, in display order.
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

    /// Formats the number of done items without products, or returns `None` if zero.
    pub fn empty_handed(&self) -> Option<String> {
        (self.handed_over_nothing > 0).then(|| format!("{} with {NOTHING}", self.handed_over_nothing))
    }

    /// Returns true if every item is done and green, and no rule recorded an outcome or stopped.
    pub fn is_green(&self) -> bool {
        self.are_items_green() && self.said.is_empty() && self.stopped.is_none()
    }

    /// Returns true if every item is done and green, ignoring rules.
    pub fn are_items_green(&self) -> bool {
        self.done == self.total
    }

    /// Formats the rules' outcomes; empty if the run is good.
    pub fn by_rules(&self) -> impl Iterator<Item = String> + '_ {
        // Outcomes are known by themselves; others need rule and reason.
        let silent = self.said.is_empty();
        let stopped = self.stopped.iter().chain(&self.also_stopped).filter(move |_| silent);
        self.said.iter().cloned().chain(stopped.map(ToString::to_string))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Formats `4 of 6 done, 1 red, 1 failed`.
impl fmt::Display for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} done", self.done, self.total)?;
        self.others().try_for_each(|(count, what)| write!(f, ", {count} {what}"))?;
        self.by_rules().try_for_each(|words| write!(f, ", {words}"))?;
        if self.claimed > 0 {
            write!(f, ", {} {CLAIMED}", self.claimed)?;
        }
        self.empty_handed().map_or(Ok(()), |words| write!(f, ", {words}"))
    }
}

/// Formats `rule polish stopped: it created 2 of at most 2`.
impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} stopped: {}", self.rule, self.reason)
    }
}

impl ItemReconciled {
    /// Returns true if the item is red: its check failed, or it changed protected files.
    pub fn is_red(&self) -> bool {
        self.status == Outcome::Done && (self.is_check_failed() || self.changes_protected())
    }

    /// Returns true if the check failed.
    pub fn is_check_failed(&self) -> bool {
        self.verify.is_some_and(|verify| !verify.passed)
    }

    /// Returns true if the patch changes protected files, the settings do not allow that, and no
    /// check judged it.
    pub fn changes_protected(&self) -> bool {
        !self.protected.is_empty() && !self.protected_allowed && !self.protected_judged
    }

    /// Returns true if a check passed while no file was protected, so that the worker could edit
    /// the files that the check rests on.
    pub fn is_check_unprotected(&self) -> bool {
        let is_by_command = self.verify.is_some_and(|verify| verify.by == VerifiedBy::Command);
        self.status == Outcome::Done && is_by_command && self.reference.is_none() && self.reused.is_none()
    }
}

impl Event {
    /// Returns the grade of an end, if less than the whole work is recorded.
    pub fn grade(&self) -> Option<Grade> {
        match self {
            Self::ItemReconciled(e) => e.grade,
            _ => None,
        }
    }

    /// Returns true if it ends an item as red.
    pub fn is_red(&self) -> bool {
        match self {
            Self::ItemReconciled(e) => e.is_red(),
            Self::ItemDecided(e) => e.is_red(),
            _ => false,
        }
    }
}
