//! The runs of a repository, and where each item of one stands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::git::store::Store;
use crate::git::{archives, refs};
use crate::model::causes::in_words;
use crate::model::digest::Digest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::outcomes::{Outcomes, Stopped};
use crate::model::plan::ProductKey;
use crate::model::time::Moment;
use crate::repository::Repository;

use super::target::{self, Target, own_runs, unarchived_runs};
use super::times::Times;
use super::view::View;

/// The runs of a repository: what `runs --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Runs {
    schema: &'static str,
    /// The newest first; those that cannot be read come last.
    pub runs: Vec<RunSummary>,
}

/// A run in a list. One that cannot be read does not hide the others.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The remote that it was fetched from; only said of one that is not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The queue that it was placed on; none where it cannot be read.
    pub queue: Option<String>,
    /// `open`, `sealed`, `archived` or `unreadable`.
    pub state: &'static str,
    /// When it was submitted, as its first entry says.
    #[serde(rename = "submittedAt", skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Moment>,
    /// Who submitted it, as its first entry says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Whether it is sealed.
    pub sealed: bool,
    /// The number of items per status, `pending` and `ready` included; red ones apart from those that are done.
    pub counts: BTreeMap<&'static str, u64>,
    /// How many of those that are ready await the approval of a person; only said where there are any.
    #[serde(rename = "awaitsApproval", skip_serializing_if = "is_none_of")]
    pub awaits_approval: u64,
    /// How many of its items are done and handed over nothing; only said where there are any.
    #[serde(rename = "handedOverNothing", skip_serializing_if = "is_none_of")]
    pub handed_over_nothing: u64,
    /// What rules had it say and still holds: then it is not good, however its items came out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The first rule that ended it before it was good, and why; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Whether it lies in an archive and has no ref of its own; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Which runs are listed besides those of this repository that have refs of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Besides {
    /// Those that were fetched.
    pub fetched: bool,
    /// Those that are archived.
    pub archived: bool,
}

/// Where a run stands: what `status --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    schema: &'static str,
    /// The run.
    pub run: RunId,
    /// The queue that it was placed on.
    pub queue: String,
    /// Whether it is sealed.
    pub sealed: bool,
    /// When it was submitted.
    #[serde(rename = "submittedAt", skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Moment>,
    /// Who submitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Who drives it; only said of an open run of this repository that is driven, or whose driver died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// How its items came out.
    pub outcome: Outcomes,
    /// Its items, in the order of the plan, each followed by what rules created for it.
    pub items: Vec<ItemStatus>,
}

/// The process that drives a run.
#[derive(Clone, Debug, Serialize)]
pub struct Driver {
    /// False if it died while items were running.
    pub alive: bool,
    /// The process, as its lock names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
}

/// A lock or a place in a queue that an item waits for.
#[derive(Clone, Debug, Serialize)]
pub struct Awaited {
    /// `lock` or `queue`.
    pub kind: &'static str,
    /// The key of the lock, or the name of the queue.
    pub name: String,
    /// The items that hold it, each as `RUN/ITEM`.
    pub holders: Vec<String>,
}

/// Where an item stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemStatus {
    /// The item.
    pub id: ItemId,
    /// `pending`, `ready`, or as the state says.
    pub status: &'static str,
    /// How many attempts were begun.
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
    /// How often a driver was gone in the middle of an attempt.
    #[serde(skip_serializing_if = "is_zero")]
    pub crashes: u32,
    /// Whether it is done although its check did not pass; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// False if it is done and handed over nothing although it could have; only said where it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<bool>,
    /// Whether another item has taken its place, so that it does not count; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
    /// Whether it waits for somebody's decision; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits_approval: bool,
    /// The lock or the place in the queue that it waits for; only said where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Awaited>,
    /// When its latest attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Moment>,
    /// When that ended, or the item was decided, skipped or cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    /// How long the attempt took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The key that decided about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// The item of another run, `RUN/ITEM`, that its products are taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<String>,
    /// Why it ended as it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the worker says that it did: a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls it with")]
fn is_none_of(count: &u64) -> bool {
    *count == 0
}

impl Repository {
    /// Lists the runs of this repository, and then those that were fetched if that is asked for.
    pub fn runs(&self, besides: Besides) -> Result<Runs, target::Error> {
        let present: BTreeSet<RunId> = unarchived_runs(&self.store)?.into_iter().collect();
        let own = if besides.archived { own_runs(&self.store)? } else { present.iter().cloned().collect() };
        let mut runs: Vec<RunSummary> = own.into_iter().map(|run| summary(&self.store, &Target::own(run))).collect();
        runs.iter_mut().for_each(|run| run.archived = !present.contains(&run.run));
        if besides.fetched {
            let present = Target::unarchived_fetched(&self.store)?;
            let present: BTreeSet<String> = present.into_iter().map(|target| target.reference).collect();
            for target in Target::all_fetched(&self.store)? {
                let archived = !present.contains(&target.reference);
                if besides.archived || !archived {
                    runs.push(RunSummary { archived, ..summary(&self.store, &target) });
                }
            }
        }
        let unreadable = Target::unreadable(&self.store)?.into_iter();
        let unreadable = unreadable.filter(|target| besides.fetched || target.is_own());
        runs.extend(unreadable.map(|target| summary(&self.store, &target)));
        runs.iter_mut().filter(|run| run.archived && run.error.is_none()).for_each(|run| run.state = "archived");
        // The sort is stable, so that what was submitted at one moment stays in order of name.
        runs.sort_by_key(|run| (run.submitted_at.is_none(), Reverse(run.submitted_at)));
        Ok(Runs { schema: "git-handoff.runs/1", runs })
    }

    /// Returns why each archive of ours that cannot be read cannot; its runs are not listed.
    pub fn unreadable_archives(&self) -> Result<Vec<String>, target::Error> {
        let unreadable = archives::unreadable(&self.store).map_err(refs::Error::from)?;
        Ok(unreadable.iter().map(|error| in_words(error)).collect())
    }

    /// Returns how many runs of this repository are archived.
    pub fn count_archived(&self) -> Result<usize, target::Error> {
        Ok(own_runs(&self.store)?.len() - unarchived_runs(&self.store)?.len())
    }

    /// Returns how many runs that were fetched have a ref of their own here.
    pub fn count_fetched(&self) -> Result<usize, target::Error> {
        Ok(Target::unarchived_fetched(&self.store)?.len())
    }

    /// Says where a run stands, ours or a fetched one.
    pub fn status(&self, run: &str) -> Result<Status, target::Error> {
        Ok(Status::of(&Target::find(&self.store, run)?.view(&self.store)?))
    }
}

impl RunSummary {
    /// Returns whether all of it is done and green, and no rule had it say anything else.
    pub fn is_green(&self) -> bool {
        let is_open = |status: &str| !matches!(status, "done" | "superseded");
        self.error.is_none()
            && self.said.is_empty()
            && self.stopped.is_none()
            && !self.counts.keys().any(|status| is_open(status))
    }
}

fn summary(store: &Store, target: &Target) -> RunSummary {
    let (run, remote) = (target.run.clone(), target.remote());
    match target.view(store) {
        Ok(view) => {
            let Outcomes { handed_over_nothing, said, stopped, .. } = view.state.outcomes();
            let first = view.links.first().map(|link| &link.entry);
            RunSummary {
                run,
                remote,
                queue: Some(view.state.submitted.queue.clone()),
                state: if view.state.sealed { "sealed" } else { "open" },
                submitted_at: first.map(|entry| entry.at),
                author: first.map(|entry| entry.actor.clone()),
                sealed: view.state.sealed,
                counts: counts(&view),
                awaits_approval: view.state.waiting_for_people().count() as u64,
                handed_over_nothing,
                said,
                stopped,
                archived: false,
                error: None,
            }
        }
        Err(error) => RunSummary {
            run,
            remote,
            queue: None,
            state: "unreadable",
            submitted_at: None,
            author: None,
            sealed: false,
            counts: BTreeMap::new(),
            awaits_approval: 0,
            handed_over_nothing: 0,
            said: Vec::new(),
            stopped: None,
            archived: false,
            error: Some(error.to_string()),
        },
    }
}

/// Returns the number of items per status, `pending` and `ready` included; red ones are counted as `red` and not as `done`, and those
/// whose place others took as `superseded` alone.
pub fn counts(view: &View) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for (at, item) in view.state.items.iter().enumerate() {
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
    /// Says where a run stands that was read.
    pub fn of(view: &View) -> Self {
        Self {
            schema: "git-handoff.status/1",
            run: view.run.clone(),
            queue: view.state.submitted.queue.clone(),
            sealed: view.state.sealed,
            submitted_at: view.links.first().map(|link| link.entry.at),
            author: view.links.first().map(|link| link.entry.actor.clone()),
            driver: None,
            outcome: view.state.outcomes(),
            items: ItemStatus::all(view),
        }
    }
}

impl Status {
    /// Keeps what waits, and what is in the way of others: what failed, was skipped or cancelled, and what is red.
    #[must_use]
    pub fn blocked(mut self) -> Self {
        let lost = |status| matches!(status, "failed" | "skipped" | "cancelled");
        self.items.retain(|item| {
            let waits = !item.blocked_by.is_empty() || item.awaits_approval || item.status == "ready";
            (waits || lost(item.status) || item.red) && !item.superseded
        });
        self
    }
}

impl ItemStatus {
    /// Says where each item of a run stands, in the order in which they are listed.
    pub fn all(view: &View) -> Vec<Self> {
        let times = Times::of(view);
        view.state.listed().into_iter().map(|at| Self::with(view, at, times[at])).collect()
    }

    /// Says where the item at a position stands.
    pub fn of(view: &View, at: usize) -> Self {
        Self::with(view, at, Times::of(view)[at])
    }

    fn with(view: &View, at: usize, times: Times) -> Self {
        let state = &view.state.items[at];
        let id = |on: usize| view.state.graph.item(on).id.clone();
        let blocking = if state.phase.is_terminal() { Vec::new() } else { view.state.blocked_by(at).collect() };
        let mut status = Self {
            id: id(at),
            status: view.state.status(at),
            attempts: state.attempts,
            depends_on: view.state.graph.dependencies(at).iter().map(|on| id(*on)).collect(),
            blocked_by: blocking.into_iter().map(id).collect(),
            result_ref: None,
            output_refs: BTreeMap::new(),
            document_refs: BTreeMap::new(),
            crashes: state.crashes,
            red: state.red,
            handed_over: view.state.handed_over_nothing(at).then_some(false),
            superseded: view.state.is_superseded(at),
            awaits_approval: view.state.waits_for_people(at),
            waits_for: None,
            started_at: times.started_at,
            ended_at: times.ended_at,
            duration_ms: times.duration_ms,
            decided_by: state.decided_by.clone(),
            reused: state.reused.as_ref().map(|(run, item)| format!("{run}/{item}")),
            reason: state.reason.clone(),
            summary: state.summary.clone(),
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
