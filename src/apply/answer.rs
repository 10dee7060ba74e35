//! What `apply` answers, as JSON has it.

use serde::Serialize;

use crate::model::digest::{Digest, Oid};
use crate::model::name::{ItemId, RunId};

use super::submodules::Left;
use super::{Applied, Conflict, Planned, Step};

/// What was applied, or why nothing was: what `apply --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Answer<'a> {
    schema: &'static str,
    /// The run.
    pub run: &'a RunId,
    /// Whether anything could be applied; with `planned`, whether it could be.
    pub applied: bool,
    /// What would be changed, where nothing was to be: the commits, or without any what each item changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<&'a [Planned]>,
    /// The branch that moved, or would.
    pub branch: Option<&'a str>,
    /// The items, in the order in which they were applied; none where something conflicts.
    pub items: Vec<AppliedItem<'a>>,
    /// The commits that were made.
    pub commits: Vec<Oid>,
    /// What conflicts.
    pub conflicts: Vec<&'a Conflict>,
    /// Whether what conflicts is in the work tree, to be resolved; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Changes to submodules that items hand over, and that are not applied; only said where there are any.
    #[serde(skip_serializing_if = "<[Left]>::is_empty")]
    pub submodules: &'a [Left],
    /// Whether what was begun was given up, and everything is as it was; only said where it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted: Option<bool>,
}

/// An item that was applied.
#[derive(Clone, Debug, Serialize)]
pub struct AppliedItem<'a> {
    /// The item.
    pub item: &'a ItemId,
    /// Its patch.
    pub product: Digest,
    /// Whether it changed anything that was not there already.
    pub changed: bool,
    /// The commit that was made for it.
    pub commit: Option<Oid>,
    /// Whether its check did not pass; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// Whether the commit rests on what a person resolved, and is not just what the item handed over; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resolved: bool,
}

impl<'a> Answer<'a> {
    /// Answers that the items of a run are no longer applied.
    pub fn aborted(run: &'a RunId, nothing: &'a Applied, is_back: bool) -> Self {
        Self { applied: false, aborted: Some(is_back), ..Self::of(run, nothing) }
    }

    /// Answers what came of a run.
    pub fn of(run: &'a RunId, applied: &'a Applied) -> Self {
        let refused = !applied.conflicts.is_empty();
        let item = |step: &'a Step| AppliedItem {
            item: &step.item,
            product: step.product,
            changed: step.changed,
            commit: step.commit,
            red: step.red,
            resolved: step.resolved,
        };
        Self {
            schema: "git-handoff.apply/1",
            run,
            applied: !refused,
            planned: applied.planned.as_deref(),
            branch: applied.moved.as_deref(),
            items: applied.steps.iter().filter(|_| !refused || applied.stopped).map(item).collect(),
            commits: applied.steps.iter().filter_map(|step| step.commit).collect(),
            conflicts: applied.conflicts.iter().collect(),
            stopped: applied.stopped,
            submodules: &applied.submodules,
            aborted: None,
        }
    }
}
