//! The JSON output of `apply`.

use serde::Serialize;

use crate::model::digest::Oid;
use crate::model::name::RunId;

use super::submodules::Left;
use super::{Applied, Conflict, Planned, Step};

/// The output of `apply --json`: what was applied, or why nothing was.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.apply/1")]
pub struct Answer<'a> {
    /// The run.
    run: &'a RunId,
    /// False for a dry run, and if anything conflicts.
    applied: bool,
    /// For a dry run: the planned commits, or without commits the changes of each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned: Option<&'a [Planned]>,
    /// The branch that was or would be moved.
    branch: Option<&'a str>,
    /// The items in the order of application; empty after a conflict.
    items: &'a [Step],
    /// The commits that were made.
    commits: Vec<Oid>,
    /// The conflicts.
    conflicts: &'a [Conflict],
    /// True if the conflicts are in the work tree, to be resolved; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
    /// Changes to submodules that items hand over and that are not applied; absent if there are
    /// none.
    #[serde(skip_serializing_if = "<[Left]>::is_empty")]
    submodules: &'a [Left],
    /// True if an `--abort` restored the earlier state.
    #[serde(skip_serializing_if = "Option::is_none")]
    aborted: Option<bool>,
}

impl<'a> Answer<'a> {
    /// Creates the answer to `--abort`.
    pub fn aborted(run: &'a RunId, nothing: &'a Applied, is_back: bool) -> Self {
        Self { applied: false, aborted: Some(is_back), ..Self::new(run, nothing) }
    }

    /// Creates the answer for an applied run.
    pub fn new(run: &'a RunId, applied: &'a Applied) -> Self {
        let refused = !applied.conflicts.is_empty();
        Self {
            run,
            applied: !refused && applied.planned.is_none(),
            planned: applied.planned.as_deref(),
            branch: applied.moved.as_deref(),
            items: if refused && !applied.stopped { &[] } else { &applied.steps },
            commits: applied.steps.iter().filter_map(|step| step.commit).collect(),
            conflicts: &applied.conflicts,
            stopped: applied.stopped,
            submodules: &applied.submodules,
            aborted: None,
        }
    }
}
