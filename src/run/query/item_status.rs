//! The status of an item, as `status --json` prints it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::digest::Digest;
use crate::model::entry::Grade;
use crate::model::item_index::{ItemIndex, ItemVec};
use crate::model::item_state::Holder;
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::ProductKey;
use crate::model::protected::ProtectedChange;
use crate::model::state::Phase;

use super::list::{Awaited, is_zero};
use super::times::Times;
use super::usage::{Attempts, ItemUsage};
use super::view::View;

/// The status of an item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ItemStatus {
    /// The item.
    pub id: ItemId,
    /// `pending`, `ready`, or the status in the state.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::ItemState"))]
    pub status: &'static str,
    /// `claimed` if it takes a commit that was made before; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// The number of attempts that were begun.
    pub attempts: u32,
    /// The items that it comes after.
    pub depends_on: Vec<ItemId>,
    /// Those of them that are still to be done.
    pub blocked_by: Vec<ItemId>,
    /// The digest of its patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_ref: Option<Digest>,
    /// The digests of its output files.
    pub output_refs: BTreeMap<FilePath, Digest>,
    /// The digests of the documents that it handed over.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub document_refs: BTreeMap<FilePath, Digest>,
    /// The number of attempts that a crash of the driver ended; absent if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub crashes: u32,
    /// Whether it is done although its check failed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// The changes of its patch to protected files; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub protected: Vec<ProtectedChange>,
    /// Whether a check that passed judged these changes; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Whether its check decided while no file was protected; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unprotected: bool,
    /// The key that approved these changes; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::Fingerprint>"))]
    pub approved_by: Option<String>,
    /// The actor whose settings, as the driver, allowed the changes to protected files; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
    /// False if it is done without products, although it could have some; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = false)))]
    pub handed_over: Option<bool>,
    /// Whether another item replaced it, so that it does not count; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// Whether it waits for a decision; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits_approval: bool,
    /// The lock or the queue that it waits for; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Awaited>,
    /// The times of its latest attempt.
    #[serde(flatten)]
    pub times: Times,
    /// The driver that holds its running attempt, in a shared run.
    #[serde(flatten)]
    pub holder: Option<Holder>,
    /// The key that decided on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::Fingerprint>"))]
    pub decided_by: Option<String>,
    /// The item, `RUN/ITEM`, whose products it reuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<String>,
    /// The reason of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The worker's own summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The tokens and the price of all its attempts; absent if no worker reported any. With `status
    /// --usage`, every item with attempts has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ItemUsage>,
}

impl ItemStatus {
    /// Returns the status of all items of a run, in their listed order.
    pub fn all(view: &View) -> Vec<Self> {
        Self::with_attempts(view, &Attempts::from_view(view))
    }

    /// Returns the status of all items of a run, whose attempts were collected before.
    pub(super) fn with_attempts(view: &View, attempts: &ItemVec<Attempts>) -> Vec<Self> {
        let times = Times::from_view(view);
        view.state.listed().into_iter().map(|at| Self::with(view, at, times[at], &attempts[at])).collect()
    }

    /// Returns the status of one item.
    pub fn from_view(view: &View, at: ItemIndex) -> Self {
        Self::with(view, at, Times::from_view(view)[at], &Attempts::from_view(view)[at])
    }

    fn with(view: &View, at: ItemIndex, times: Times, attempts: &Attempts) -> Self {
        let state = &view.state.items[at];
        let blocking = if state.phase.is_terminal() { Vec::new() } else { view.state.blocked_by(at).collect() };
        let mut status = Self {
            id: view.state.graph.item(at).id.clone(),
            status: view.state.status(at),
            attempts: state.attempts,
            depends_on: view
                .state
                .graph
                .dependencies(at)
                .iter()
                .map(|on| view.state.graph.item(*on).id.clone())
                .collect(),
            blocked_by: blocking.into_iter().map(|on| view.state.graph.item(on).id.clone()).collect(),
            result_ref: None,
            output_refs: BTreeMap::new(),
            document_refs: BTreeMap::new(),
            crashes: state.crashes,
            red: state.red,
            protected: state.protected.clone(),
            judged: state.judged,
            unprotected: state.unprotected,
            approved_by: state.approved_by.clone(),
            allowed_by: state.allowed_by.clone(),
            handed_over: view.state.handed_over_nothing(at).then_some(false),
            superseded: view.state.is_superseded(at),
            awaits_approval: view.state.waits_for_people(at),
            waits_for: None,
            times,
            holder: state.holder.clone(),
            decided_by: state.decided_by.clone(),
            grade: (state.phase == Phase::Done && view.state.graph.item(at).is_claimed()).then_some(Grade::Claimed),
            reused: state.reused.as_ref().map(|(run, item)| format!("{run}/{item}")),
            reason: state.reason.clone(),
            summary: state.summary.clone(),
            usage: attempts.usage().filter(|usage| !usage.is_unknown()),
        };
        for (key, product) in &state.products {
            match key {
                ProductKey::Patch => status.result_ref = Some(product.sha256),
                ProductKey::Output(path) => drop(status.output_refs.insert(path.clone(), product.sha256)),
                ProductKey::Document(name) => drop(status.document_refs.insert(name.clone(), product.sha256)),
            }
        }
        status
    }
}
