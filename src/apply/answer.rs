//! The JSON output of `apply`.

use serde::Serialize;

use crate::model::digest::{Digest, Oid};
use crate::model::name::{ItemId, RunId};
use crate::model::protected::ProtectedChange;

use super::submodules::Left;
use super::{Applied, Conflict, Planned, Step};

/// The output of `apply --json`: what was applied, or why nothing was.
#[derive(Clone, Debug, Serialize)]
pub struct Answer<'a> {
    schema: &'static str,
    /// The run.
    pub run: &'a RunId,
    /// True if the run was applied. False for a dry run, and if anything conflicts.
    pub applied: bool,
    /// For a dry run: the planned commits, or without commits the changes of each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<&'a [Planned]>,
    /// The branch that was or would be moved.
    pub branch: Option<&'a str>,
    /// The items in the order of application; empty after a conflict.
    pub items: Vec<AppliedItem<'a>>,
    /// The new commits.
    pub commits: Vec<Oid>,
    /// The conflicts.
    pub conflicts: Vec<&'a Conflict>,
    /// True if the conflicts are in the work tree, to be resolved. Omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Changes to submodules, which are not applied. Omitted if there are none.
    #[serde(skip_serializing_if = "<[Left]>::is_empty")]
    pub submodules: &'a [Left],
    /// True if an `--abort` restored the earlier state. Omitted without `--abort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborted: Option<bool>,
}

/// An item that was applied.
#[derive(Clone, Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the JSON")]
pub struct AppliedItem<'a> {
    /// The item.
    pub item: &'a ItemId,
    /// Its patch.
    pub product: Digest,
    /// True if it changed anything.
    pub changed: bool,
    /// Its new commit.
    pub commit: Option<Oid>,
    /// True if its check failed. Omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// Its applied changes to protected files that a check judged. Omitted if there are none.
    #[serde(skip_serializing_if = "<[ProtectedChange]>::is_empty")]
    pub judged: &'a [ProtectedChange],
    /// True if the commit contains a person's resolution instead of the item's exact patch. Omitted
    /// if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resolved: bool,
    /// True if its changes to protected files are left out. Omitted if false.
    #[serde(rename = "withoutProtected", skip_serializing_if = "std::ops::Not::not")]
    pub without_protected: bool,
}

impl<'a> Answer<'a> {
    /// Creates the answer to `--abort`.
    pub fn aborted(run: &'a RunId, nothing: &'a Applied, is_back: bool) -> Self {
        Self { applied: false, aborted: Some(is_back), ..Self::of(run, nothing) }
    }

    /// Creates the answer for an applied run.
    pub fn of(run: &'a RunId, applied: &'a Applied) -> Self {
        let refused = !applied.conflicts.is_empty();
        let item = |step: &'a Step| AppliedItem {
            item: &step.item,
            product: step.product,
            changed: step.changed,
            commit: step.commit,
            red: step.red,
            judged: &step.judged,
            resolved: step.resolved,
            without_protected: step.without_protected,
        };
        Self {
            schema: "git-handoff.apply/1",
            run,
            applied: !refused && applied.planned.is_none(),
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
