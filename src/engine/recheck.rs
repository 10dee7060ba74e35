//! Repeats the recorded checks of a run, each in a fresh worktree of the run's base with the item's
//! products. Nothing is recorded.

mod ready;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;

use crate::git::refs;
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::entry::{Event, ItemReconciled, Outcome, Verified, VerifiedBy};
use crate::model::item_index::ItemIndex;
use crate::model::last_lines::last_lines;
use crate::model::manifest::{self, Manifest};
use crate::model::name::{ItemId, RunId};
use crate::model::plan::Selector;
use crate::model::state::Phase;
use crate::model::words::words;
use crate::repository::Repository;
use crate::run::query::piece::PieceName;
use crate::run::query::{Target, VerifiedRun};
use crate::worktree::workspace::{self, Workspace};

use super::attempt::repeat::{Repeated, repeat};
use super::machine::Machine;
use super::recover;
use super::run_lock::{self, RunLock};
use ready::Ready;

words! {
    as_str
    /// Whether a check ends as recorded. The worst result comes last.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Verdict {
        /// It ends as recorded.
        Same = "same",
        /// It cannot be repeated here.
        Cannot = "cannot",
        /// It ends otherwise.
        Different = "different",
    }
}

/// The repeated check of one item.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ItemResult {
    /// The item.
    pub item: ItemId,
    /// The comparison of its check with the record.
    pub result: Verdict,
    /// The end of the check, or the reason why it cannot be repeated.
    pub detail: String,
}

/// The repeated checks of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Rechecked {
    /// The worst result of an item: different, then cannot, then same.
    pub result: Verdict,
    /// The number of items for each result.
    pub detail: String,
    /// The items with a recorded check.
    pub items: Vec<ItemResult>,
}

impl Rechecked {
    fn new(items: Vec<ItemResult>) -> Self {
        let counts = [Verdict::Same, Verdict::Different, Verdict::Cannot]
            .map(|verdict| (verdict, items.iter().filter(|item| item.result == verdict).count()));
        let counts = counts.iter().filter(|(_, number)| *number > 0);
        let detail = counts.map(|(verdict, number)| format!("{number} {}", verdict.as_str())).collect::<Vec<_>>();
        let result = items.iter().map(|item| item.result).max().unwrap_or(Verdict::Same);
        Self { result, detail: detail.join(", "), items }
    }
}

/// The commands of one item that would run, for the user to confirm.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Shown {
    pub item: ItemId,
    pub setup: Option<Vec<String>>,
    pub check: Vec<String>,
    /// The layers of the sandbox, or `none`.
    pub sandbox: String,
    /// The network access in the sandbox.
    pub network: Option<&'static str>,
}

/// The recorded check of one item.
struct Recorded {
    at: ItemIndex,
    manifest: Manifest,
    passed: bool,
}

/// Checks that are ready to be repeated.
pub struct Recheck<'r> {
    repository: &'r Repository,
    run: VerifiedRun,
    machine: Machine,
    checks: Vec<(Recorded, Result<Ready, String>)>,
}

impl Repository {
    /// Prepares to repeat the recorded check of an item, or of all done items of a run.
    pub fn recheck(&self, run: VerifiedRun, item: Option<ItemIndex>) -> Result<Recheck<'_>, AnyError> {
        // The last end of an item counts.
        let ends = run.links.iter().filter_map(|link| match &link.entry.event {
            Event::ItemReconciled(e) if e.status == Outcome::Done => Some((run.state.graph.position(&e.item)?, e)),
            _ => None,
        });
        let ends: BTreeMap<ItemIndex, &ItemReconciled> = ends.collect();
        let mut recorded = Vec::new();
        for (at, end) in ends.into_iter().filter(|(at, _)| item.is_none_or(|item| item == *at)) {
            recorded.extend(recorded_check(self, &run, at, end)?);
        }
        if recorded.is_empty() {
            return Err(match item {
                Some(at) => Error::NoCheck(run.run.clone(), run.state.graph.item(at).id.clone()).into(),
                None => Error::NoChecks(run.run.clone()).into(),
            });
        }
        let machine = Machine::new(self, false)?;
        let checks = recorded
            .into_iter()
            .map(|recorded| {
                let ready = Ready::new(&machine, &run, recorded.at, &recorded.manifest);
                (recorded, ready)
            })
            .collect();
        Ok(Recheck { repository: self, run, machine, checks })
    }
}

/// Returns the recorded check of an item that ended as done, or `None` if it has none.
fn recorded_check(
    repository: &Repository,
    run: &VerifiedRun,
    at: ItemIndex,
    end: &ItemReconciled,
) -> Result<Option<Recorded>, AnyError> {
    if run.state.items[at].phase != Phase::Done {
        return Ok(None);
    }
    let (id, store) = (&run.state.graph.item(at).id, &repository.store);
    let Some(blob) = run.manifest(id) else { return Ok(None) };
    let bytes = blob.read(store).map_err(|error| Error::Read(id.clone(), Box::new(error)))?;
    let manifest = Manifest::parse(&bytes).map_err(|error| Error::Manifest(id.clone(), error))?;
    // A worker's own verdict says nothing about the command, which has passed then.
    let failed = end.verify == Some(Verified { passed: false, by: VerifiedBy::Command });
    Ok(manifest.verify.is_some().then_some(Recorded { at, manifest, passed: !failed }))
}

impl Recheck<'_> {
    /// Returns the commands that would run. Those of items that cannot be repeated here are left
    /// out.
    pub fn commands(&self) -> Vec<Shown> {
        self.checks
            .iter()
            .filter_map(|(recorded, ready)| Some(ready.as_ref().ok()?.describe(&recorded.manifest)))
            .collect()
    }

    /// Returns the commit that the run starts from.
    pub fn base(&self) -> Oid {
        self.run.state.submitted.base
    }

    /// Repeats the checks one after the other. Returns `None` if it was interrupted.
    ///
    /// No worktree is left behind, unless this process is killed.
    pub async fn run(self, cancel: watch::Receiver<bool>) -> Result<Option<Rechecked>, AnyError> {
        let Self { repository, run, machine, checks } = self;
        let host = machine.host.clone();
        let mut items = Vec::new();
        let is_any_ready = checks.iter().any(|(_, ready)| ready.is_ok());
        let _lock = is_any_ready.then(|| prepare_host(repository, &machine, &run)).transpose()?;
        for (recorded, ready) in checks {
            let id = run.state.graph.item(recorded.at).id.clone();
            let repeated = match ready {
                Ok(ready) => {
                    let consumed = &run.state.items[recorded.at].inputs;
                    let consumes_patch = consumed.values().any(|input| input.select == Selector::Patch);
                    repeat(&host, Arc::new(ready.job), &ready.products, consumes_patch, &cancel).await
                }
                Err(why) => Repeated::Cannot(why),
            };
            let (result, detail) = match repeated {
                Repeated::Interrupted => {
                    host.leave(&run.run).map_err(Error::Workspace)?;
                    return Ok(None);
                }
                Repeated::Cannot(why) => (Verdict::Cannot, why),
                Repeated::Ended { failed, output } => {
                    compare(recorded.passed, failed.as_deref(), &output, || transcript(repository, &run, &id))
                }
            };
            items.push(ItemResult { item: id, result, detail });
        }
        if is_any_ready {
            host.leave(&run.run).map_err(Error::Workspace)?;
        }
        Ok(Some(Rechecked::new(items)))
    }
}

/// Locks the run, and removes worktrees of the same attempts that a killed process left.
///
/// The lock keeps a driver and `clean` away from the worktrees. A fetched run can have the id of an
/// own one, whose attempts are left alone: then the worktree cannot be created.
fn prepare_host(repository: &Repository, machine: &Machine, run: &VerifiedRun) -> Result<RunLock, AnyError> {
    let (store, host) = (&repository.store, &machine.host);
    let lock = RunLock::take(&store.common_dir(), &run.run).map_err(Error::Lock)?;
    host.prepare(run.state.submitted.base).map_err(Error::Workspace)?;
    let own = Target::own(run.run.clone());
    if run.head.name == own.reference || refs::read(store, &own.reference)?.is_none() {
        let left = Workspace::leftovers(host, &run.run)
            .map_err(Error::Workspace)?
            .into_iter()
            .filter(|left| {
                let at = run.state.graph.position(&left.item).map(|at| &run.state.items[at]);
                at.is_some_and(|state| state.phase == Phase::Done && state.attempts == left.attempt)
            })
            .collect();
        recover::discard(host, &run.run, left, run.state.submitted.base)?;
    }
    Ok(lock)
}

/// Compares the end of a check with the recorded one.
fn compare(
    passed: bool,
    failed: Option<&str>,
    output: &str,
    transcript: impl FnOnce() -> Option<String>,
) -> (Verdict, String) {
    let now = failed.unwrap_or("the check passed");
    let recorded = if passed { "passed" } else { "failed" };
    if passed == failed.is_none() {
        return (Verdict::Same, format!("{now}; recorded: {recorded}"));
    }
    let before = transcript().map_or_else(|| "its transcript is not here".to_owned(), |before| or_none(&before));
    let now_output = or_none(output);
    let detail = format!("{now}; recorded: {recorded}; output now: {now_output}; recorded output: {before}");
    (Verdict::Different, detail)
}

fn or_none(output: &str) -> String {
    if output.is_empty() { "none".to_owned() } else { output.to_owned() }
}

/// Returns the end of the recorded output of an item's check, or of its whole transcript if the
/// output has no record of its own. Returns `None` if it is not here.
fn transcript(repository: &Repository, run: &VerifiedRun, item: &ItemId) -> Option<String> {
    let store = &repository.store;
    let target = Target { run: run.run.clone(), reference: run.head.name.clone() };
    let piece = |kind: &str| {
        PieceName::find(store, &format!("{}/{item}:{kind}", target.name())).ok()?.find_blob(store, run).ok()
    };
    let blob = piece("check").or_else(|| piece("transcript"))?;
    blob.map_or_else(|| Some(String::new()), |blob| Some(last_lines(&blob.read(store).ok()?)))
}

errors! {
    /// Failures to repeat checks.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NoCheck(RunId, ItemId) "no-check":
        "the item {:?} of the run {:?} is not done with a recorded check" [.1.as_str(), .0.as_str()];
    NoChecks(RunId) "no-check": "the run {:?} has no done item with a recorded check" [.0.as_str()];
    Read(ItemId, #[source] Box<crate::git::verified_stream::Error>) "altered":
        "cannot read the manifest of {:?}" [.0.as_str()];
    Manifest(ItemId, #[source] manifest::Error) "altered": "cannot read the manifest of {:?}" [.0.as_str()];
    #[from "recheck"] Lock(run_lock::Error), Workspace(workspace::Error);
}
