//! Lists runs, and the status of their items.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::git::store::Store;
use crate::git::{archives, refs};
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::name::RunId;
use crate::model::outcomes::{Outcomes, Stopped};
use crate::model::time::Moment;
use crate::repository::Repository;

use super::declined::DeclinedItem;
use super::estimate::Estimate;
pub use super::item_status::ItemStatus;
use super::remote_read::RemoteRead;
use super::saved::Saved;
use super::sealed_summaries::SealedSummaries;
use super::show::RunDocument;
use super::target::{self, Target, own_runs, unarchived_runs};
use super::usage::RunUsage;
use super::view::View;

/// The runs of a repository, as `runs --json` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.runs/1")]
pub struct Runs {
    /// Newest first. Unreadable runs come last.
    pub runs: Vec<RunSummary>,
}

/// A run in a list. An unreadable one does not hide the others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The remote of a fetched run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The queue of the run; null if unreadable.
    pub queue: Option<String>,
    /// `open`, `sealed`, `archived` or `unreadable`.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["open", "sealed", "archived", "unreadable"])))]
    pub state: String,
    /// The time of its submission; absent if unreadable.
    #[serde(rename = "submittedAt", skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Moment>,
    /// The submitter, by its first entry; absent if unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Whether it is sealed.
    pub sealed: bool,
    /// The number of items by status. Red items are counted apart from done ones.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Counts"))]
    pub counts: BTreeMap<String, u64>,
    /// The number of ready items that wait for a decision; absent if 0.
    #[serde(rename = "awaitsApproval", default, skip_serializing_if = "is_zero")]
    pub awaits_approval: u64,
    /// The number of items that are done without products; absent if 0.
    #[serde(rename = "handedOverNothing", default, skip_serializing_if = "is_zero")]
    pub handed_over_nothing: u64,
    /// The number of items that take commits that were made before, which are done as well; absent
    /// if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub claimed: u64,
    /// The goal that all items have; absent if they have several or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The outcomes that rules recorded. The run is not green if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The first rule that ended the run before it was done, with the reason; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Whether it has no ref of its own; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub archived: bool,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The runs to list besides those of this repository with a ref of their own.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Besides {
    pub fetched: bool,
    pub archived: bool,
}

/// The status of a run, as `status --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.status/1")]
pub struct Status {
    /// The run.
    pub run: RunId,
    /// The queue that it was placed on.
    pub queue: String,
    /// Whether it is sealed.
    pub sealed: bool,
    /// The time of its submission.
    #[serde(rename = "submittedAt", skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Moment>,
    /// The submitter, by its first entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The driver of an open run of this repository, if there is one or it died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// The remote that the run was pushed to or is shared through, if it was to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteRead>,
    /// The pace at which items ended last; absent if fewer than four did, nothing runs, or a person
    /// has to decide first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Estimate>,
    /// The outcome of its items.
    pub outcome: Outcomes,
    /// The sum of the items' use, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// In the order of the plan. Items that rules created follow their cause.
    pub items: Vec<ItemStatus>,
    /// The items that drivers decline, by their beats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<DeclinedItem>,
    /// The work of failed and interrupted attempts that is saved beside the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<Saved>,
}

/// The process that drives a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Driver {
    /// False if it died while items were running.
    pub alive: bool,
    /// The process, as its lock names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
}

/// A lock or a queue that an item waits for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Awaited {
    /// `lock` or `queue`.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["lock", "queue"])))]
    pub kind: &'static str,
    /// The key of the lock, or the name of the queue.
    pub name: String,
    /// The items that hold it, each as `RUN/ITEM`.
    pub holders: Vec<String>,
}

pub(crate) fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

impl Repository {
    /// Lists the runs of this repository, and optionally archived and fetched ones.
    pub fn runs(&self, besides: Besides) -> Result<Runs, target::Error> {
        let mut known = SealedSummaries::read(&self.store);
        let present: BTreeSet<RunId> = unarchived_runs(&self.store)?.into_iter().collect();
        let own = if besides.archived { own_runs(&self.store)? } else { present.iter().cloned().collect() };
        let mut runs: Vec<RunSummary> =
            own.into_iter().map(|run| known.summary(&self.store, &Target::own(run))).collect();
        runs.iter_mut().for_each(|run| run.archived = !present.contains(&run.run));
        if besides.fetched {
            let present_fetched = Target::unarchived_fetched(&self.store)?;
            let present_fetched: BTreeSet<String> =
                present_fetched.into_iter().map(|target| target.reference).collect();
            for target in Target::all_fetched(&self.store)? {
                let archived = !present_fetched.contains(&target.reference);
                if besides.archived || !archived {
                    runs.push(RunSummary { archived, ..known.summary(&self.store, &target) });
                }
            }
        }
        known.keep(&self.store);
        let unreadable = Target::unreadable(&self.store)?.into_iter();
        let unreadable = unreadable.filter(|target| besides.fetched || target.is_own());
        runs.extend(unreadable.map(|target| summary(&self.store, &target).0));
        runs.iter_mut().filter(|run| run.archived && run.error.is_none()).for_each(|run| run.state = "archived".into());
        // The sort is stable, so runs that were submitted at the same moment stay in order of name.
        runs.sort_by_key(|run| (run.submitted_at.is_none(), Reverse(run.submitted_at)));
        Ok(Runs { runs })
    }

    /// Returns the errors of our archives that cannot be read. Their runs are not listed.
    pub fn unreadable_archives(&self) -> Result<Vec<String>, target::Error> {
        let unreadable = archives::unreadable(&self.store).map_err(refs::Error::from)?;
        Ok(unreadable.iter().map(|error| in_words(error)).collect())
    }

    /// Returns the number of archived runs of this repository.
    pub fn count_archived(&self) -> Result<usize, target::Error> {
        Ok(own_runs(&self.store)?.len() - unarchived_runs(&self.store)?.len())
    }

    /// Returns the number of fetched runs that have a ref of their own.
    pub fn count_fetched(&self) -> Result<usize, target::Error> {
        Ok(Target::unarchived_fetched(&self.store)?.len())
    }

    /// Returns the status of a run, ours or a fetched one.
    pub fn status(&self, run: &str) -> Result<Status, target::Error> {
        Ok(Status::from_view(&Target::find(&self.store, run)?.view(&self.store)?))
    }
}

impl RunSummary {
    /// Returns true if all items are done and green, and no rule recorded another outcome.
    pub fn is_green(&self) -> bool {
        self.error.is_none()
            && self.said.is_empty()
            && self.stopped.is_none()
            && !self.counts.keys().any(|status| !matches!(status.as_str(), "done" | "superseded"))
    }
}

/// Returns the summary of a run with its head, which is `None` if the run is unreadable.
pub(super) fn summary(store: &Store, target: &Target) -> (RunSummary, Option<Oid>) {
    let blank = RunSummary {
        run: target.run.clone(),
        remote: target.remote(),
        queue: None,
        state: "unreadable".to_owned(),
        submitted_at: None,
        author: None,
        sealed: false,
        counts: BTreeMap::new(),
        awaits_approval: 0,
        handed_over_nothing: 0,
        claimed: 0,
        goal: None,
        said: Vec::new(),
        stopped: None,
        archived: false,
        error: None,
    };
    let view = match target.view(store) {
        Ok(view) => view,
        Err(error) => return (RunSummary { error: Some(error.to_string()), ..blank }, None),
    };
    let state = &view.state;
    let Outcomes { handed_over_nothing, claimed, said, stopped, .. } = state.outcomes();
    let first = view.links.first().map(|link| &link.entry);
    let summary = RunSummary {
        queue: Some(state.submitted.queue.clone()),
        state: if state.sealed { "sealed" } else { "open" }.to_owned(),
        submitted_at: first.map(|entry| entry.at),
        author: first.map(|entry| entry.actor.clone()),
        sealed: state.sealed,
        counts: counts(&view).into_iter().map(|(status, count)| (status.to_owned(), count)).collect(),
        awaits_approval: state.waiting_for_people().count() as u64,
        handed_over_nothing,
        claimed,
        goal: view.goal().map(str::to_owned),
        said,
        stopped,
        ..blank
    };
    (summary, view.head.commit)
}

/// Returns the number of items by status, including `pending` and `ready`. Red items count only as
/// `red`, and superseded ones only as `superseded`.
pub fn counts(view: &View) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for (at, item) in view.state.items.indexed() {
        let what = match (view.state.is_superseded(at), item.red) {
            (true, _) => "superseded",
            (false, true) => "red",
            (false, false) => view.state.status(at),
        };
        *counts.entry(what).or_default() += 1;
    }
    counts
}

impl Status {
    /// Returns the status of a run that was read.
    pub fn from_view(view: &View) -> Self {
        let document = RunDocument::new(view, &view.head.name);
        Self {
            run: view.run.clone(),
            queue: document.queue.to_owned(),
            sealed: document.sealed,
            submitted_at: Some(document.submitted_at),
            author: Some(document.submitted_by.to_owned()),
            driver: None,
            remote: None,
            pace: None,
            outcome: document.outcome,
            usage: None,
            items: document.items,
            declined: Vec::new(),
            saved: Vec::new(),
        }
    }

    /// Adds the remote of the run.
    #[must_use]
    pub fn with_remote(self, remote: Option<RemoteRead>) -> Self {
        Self { remote, ..self }
    }

    /// Adds the work that is saved beside the run.
    pub fn with_saved(self, store: &Store, view: &View) -> Result<Self, AnyError> {
        Ok(Self { saved: Saved::all(store, view)?, ..self })
    }

    /// Keeps items that wait or block others: failed, skipped, cancelled and red ones.
    #[must_use]
    pub fn blocked(mut self) -> Self {
        self.items.retain(|item| {
            let waits = !item.blocked_by.is_empty() || item.awaits_approval || item.status == "ready";
            (waits || matches!(item.status, "failed" | "skipped" | "cancelled") || item.red) && !item.superseded
        });
        self
    }
}
