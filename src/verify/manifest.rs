//! The row `manifest`: every dispatch has a manifest that agrees with the plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::model::bounds;
use crate::model::digest::Digest;
use crate::model::entry::{Event, ItemFired};
use crate::model::format;
use crate::model::item_index::ItemVec;
use crate::model::manifest::Manifest;
use crate::model::name::ItemId;
use crate::model::plan::{BuiltIn, COMMAND, Item};
use crate::model::printable::cut;
use crate::model::state::RunState;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings, Verdict, counted};
use super::objects::{Fault, Objects, map_objects};
use super::pipelines;

/// The reach of a run's workers, as their manifests say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// The number of attempts for each sandbox.
    pub sandbox: BTreeMap<String, u64>,
    /// True if one had the user's own home directory.
    pub real_home: bool,
    /// The places that settings let one of them write.
    pub writable: BTreeSet<String>,
}

impl Reach {
    /// Returns the reach of one worker. Manifests may be large, so this holds little of them.
    fn from_manifest(manifest: Manifest) -> Self {
        let claims = manifest.claims;
        Self {
            sandbox: [(cut(claims.sandbox), 1)].into(),
            real_home: claims.home.is_some(),
            writable: claims.writable.into_iter().take(MOST_PLACES).map(cut).collect(),
        }
    }

    fn add(&mut self, other: Self) {
        other.sandbox.into_iter().for_each(|(sandbox, count)| *self.sandbox.entry(sandbox).or_default() += count);
        self.real_home |= other.real_home;
        self.writable.extend(other.writable);
    }
}

/// The most writable places of one worker that are kept.
const MOST_PLACES: usize = 100;

/// Returns the row, and what the workers could reach; `plan` are the run's items, if known.
pub(super) fn row(case: &Case<'_>, plan: Option<&ItemVec<Item>>) -> (Verdict, Reach) {
    if let Some(cut_off) = case.cut_off() {
        return (cut_off, Reach::default());
    }
    let fired: Vec<(u64, &ItemFired)> = case
        .chain
        .links
        .iter()
        .filter_map(|link| match &link.entry.event {
            Event::ItemFired(fired) if !link.verified_before => Some((link.entry.seq, fired)),
            _ => None,
        })
        .collect();
    let items: HashMap<&ItemId, &Item> = plan.into_iter().flatten().map(|item| (&item.id, item)).collect();
    let pipelines = pipelines::by_name(&case.chain);
    let checked = map_objects(case.store, &fired, |objects, (_, fired)| {
        let item = items.get(&fired.item).copied();
        let pipeline = item.and_then(Item::pipeline).and_then(|name| Some(pipelines.get(name)?.1.sha256));
        let dispatch = Dispatch { fired, item, pipeline };
        dispatch.check(objects, case.lazy).map(Reach::from_manifest)
    });
    let mut findings = Findings::default();
    let mut reach = Reach::default();
    for ((seq, dispatched), outcome) in fired.iter().zip(checked) {
        match outcome {
            Ok(one) => reach.add(one),
            Err(problem) => report(*seq, dispatched, problem, &mut findings),
        }
    }
    let bound = counted(fired.len(), "manifest", "manifests");
    let tail = if fired.len() == 1 { "its entry" } else { "their entries" };
    let detail = if fired.is_empty() { bound.clone() } else { format!("{bound} bound to {tail}") };
    let mut verdict = findings.verdict(case.shallow, || detail);
    if case.chain.links.is_empty() {
        verdict = Verdict::not_applicable("no entry could be read");
    } else if plan.is_none() && verdict.state == super::State::Ok && !fired.is_empty() {
        verdict = Verdict::not_applicable(format!("{bound} re-hashed, but there is no plan to compare them with"));
    }
    (verdict, reach)
}

/// Checks the manifest of one dispatch; `state` is the run's state before it.
pub(super) fn check_next(case: &Case<'_>, state: &RunState, (seq, fired): (u64, &ItemFired), findings: &mut Findings) {
    let item = state.graph.position(&fired.item).map(|at| state.graph.item(at));
    let pipeline = item.and_then(Item::pipeline).and_then(|name| Some(state.pipelines.get(name)?.sha256));
    let dispatch = Dispatch { fired, item, pipeline };
    if let Err(problem) = dispatch.check(&Objects::new(case.store), case.lazy) {
        report(seq, fired, problem, findings);
    }
}

fn report(seq: u64, fired: &ItemFired, problem: Problem, findings: &mut Findings) {
    let label = format!("the manifest of {} #{}", fired.item, fired.attempt);
    let at = At::entry(seq).for_item(&fired.item);
    match problem {
        Problem::Wrong(code, why) => findings.report_at(at, code, format!("{label}: {why}")),
        Problem::Fault(fault) => findings.report_fault_at(at, Code::ManifestInvalid, &label, &fault),
    }
}

/// A dispatch, and what its manifest must agree with.
struct Dispatch<'a> {
    fired: &'a ItemFired,
    /// The item in the plan, if known.
    item: Option<&'a Item>,
    /// The sealed pipeline that the item names.
    pipeline: Option<Digest>,
}

impl Dispatch<'_> {
    fn check(&self, objects: &Objects, lazy: bool) -> Result<Manifest, Problem> {
        let Self { fired, item, pipeline } = *self;
        let bytes = objects.read_product(&fired.manifest, lazy, bounds::MANIFEST).map_err(Problem::Fault)?;
        let manifest = Manifest::parse(&bytes).map_err(|e| wrong(Code::ManifestInvalid, e.to_string()))?;
        if let Some(item) = item {
            against_plan(&manifest, item)
                .map_err(|field| wrong(Code::ManifestPlan, format!("{field} is not the plan's")))?;
            if item.pipeline().is_some() != pipeline.is_some() || pipeline != manifest.pipeline {
                return Err(wrong(Code::ManifestPlan, "pipeline is not the one that was sealed".to_owned()));
            }
        }
        Ok(manifest)
    }
}

fn wrong(code: Code, why: String) -> Problem {
    Problem::Wrong(code, cut(why))
}

enum Problem {
    Wrong(Code, String),
    Fault(Fault),
}

/// Compares a manifest with its item; returns the first field that differs.
fn against_plan(manifest: &Manifest, item: &Item) -> Result<(), &'static str> {
    check(manifest.executor == item.executor, "executor")?;
    check(manifest.inputs == format::digest_of(&item.inputs), "inputs")?;
    check(item.timeout.is_none_or(|timeout| manifest.timeout == timeout), "timeout")?;
    if item.is_for(BuiltIn::Command) {
        check(Some(&manifest.argv) == command(item).as_ref(), "argv")?;
    }
    check(manifest.start.is_some() == item.needs.values().any(|need| need.apply), "start")?;
    check(item.protect.iter().all(|pathspec| manifest.protect.contains(pathspec)), "protect")?;
    // If the item names no subagent, the dispatching machine chose it.
    let is_expected = match item.inputs.get("subagent").filter(|_| item.is_for(BuiltIn::Dispatch)) {
        Some(subagent) => manifest.subagent.as_deref() == subagent.as_str(),
        None => manifest.subagent.is_some() == (item.is_for(BuiltIn::Dispatch)),
    };
    check(is_expected, "subagent")?;
    // The dispatching machine chose the command of a registered executor, but there must be one.
    check(item.is_for(BuiltIn::Command) || !manifest.argv.is_empty(), "argv")
}

fn command(item: &Item) -> Option<Vec<String>> {
    match item.inputs.get(COMMAND)? {
        Value::String(script) => Some(vec!["sh".to_owned(), "-c".to_owned(), script.clone()]),
        Value::Array(argv) => argv.iter().map(|arg| arg.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn check(holds: bool, field: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(field) }
}
