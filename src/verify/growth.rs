//! The growth of a run: rules sealed at submit, items added later, and whether the rules added
//! exactly these.
//!
//! Part of the row `plan`.

use std::collections::BTreeMap;

use crate::model::bounds::{self, Meter};
use crate::model::document::Revision;
use crate::model::entry::{Cause, Event, RunConcluded, RunExtended, RunSubmitted};
use crate::model::extension::definition;
use crate::model::judge::{self, Act};
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Item, Plan};
use crate::model::rule::{self, MAX_CONDITION_BYTES, Rule};
use crate::model::state::RunState;

use super::Case;
use super::codes::Code;
use super::findings::{At, Findings};
use super::objects::{Fault, Objects};
use super::reader::Link;

pub(super) struct Tally<'a> {
    pub(super) findings: &'a mut Findings,
    /// The size of all `item.json`.
    pub(super) meter: &'a mut Meter,
}

/// Evidence that cannot be read. The replay stops there.
pub(super) struct Unread;

/// Returns the rules of the run: the plan's, and those that the queue added at submit.
pub(super) fn rules(
    case: &Case<'_>,
    submitted: &RunSubmitted,
    plan: &Plan,
    findings: &mut Findings,
) -> Result<Vec<Rule>, Unread> {
    let Some(product) = &submitted.rules else { return Ok(plan.rules.clone()) };
    let read = Objects::new(case.store).read_product(product, case.lazy, bounds::PLAN);
    let bytes = read.map_err(|fault| {
        findings.report_fault_at(At::entry(0), Code::RulesInvalid, "rules.json", &fault);
        Unread
    })?;
    let added = crate::plan::parse_rules(&bytes).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        findings.report(Code::RulesInvalid, format!("rules.json holds no rules: {first}"));
        Unread
    })?;
    if added.is_empty() {
        findings.report(Code::RulesInvalid, "rules.json holds no rules, and yet entry 0 names it".to_owned());
        return Err(Unread);
    }
    rule::together(&plan.rules, added).map_err(|id| {
        findings.report(Code::RulesInvalid, format!("the plan and its queue have both a rule {id:?}"));
        Unread
    })
}

/// Replays a `run.extended` after comparing it with its items and, if a rule added them, with the
/// rule.
pub(super) fn apply_extension(
    case: &Case<'_>,
    state: &mut RunState,
    link: &Link,
    tally: Tally<'_>,
) -> Result<(), Unread> {
    let Event::RunExtended(e) = &link.entry.event else { return Ok(()) };
    let Tally { findings, meter } = tally;
    let seq = link.entry.seq;
    let items = read_items(case, link, Tally { findings, meter })?;
    check_rule(case, state, seq, e, findings);
    let extended = state.extend(e, items);
    extended.unwrap_or_else(|illegal| {
        findings.report_at(At::entry(seq), Code::Transition, format!("entry {seq}: {illegal}"));
    });
    Ok(())
}

/// Compares a `run.extended` with its items and, if a rule added them, with the rule.
pub(super) fn check_next(case: &Case<'_>, state: &RunState, link: &Link, findings: &mut Findings) {
    let Event::RunExtended(e) = &link.entry.event else { return };
    let tally = Tally { findings: &mut *findings, meter: &mut Meter::default() };
    if read_items(case, link, tally).is_ok() {
        check_rule(case, state, link.entry.seq, e, findings);
    }
}

/// Reads the items that an entry added, and reports those that are not what it names.
fn read_items(case: &Case<'_>, link: &Link, Tally { findings, meter }: Tally<'_>) -> Result<Vec<Item>, Unread> {
    let Event::RunExtended(e) = &link.entry.event else { return Ok(Vec::new()) };
    let seq = link.entry.seq;
    let objects = Objects::new(case.store);
    let mut items = Vec::with_capacity(e.items.len());
    for (id, product) in &e.items {
        let at = At::entry(seq).for_item(id);
        let label = format!("entry {seq}: item.json of item {id}");
        let read = objects.read_product_metered(product, case.lazy, bounds::PLAN, meter);
        let bytes = report_unread(read, at, &label, findings)?;
        match crate::plan::parse_item(&bytes) {
            Ok(item) if definition(&item) == bytes => items.push(item),
            Ok(_) => findings.report_at(at, Code::ItemInvalid, format!("{label} is not a normalised item")),
            Err(_) => findings.report_at(at, Code::ItemInvalid, format!("{label} is no item")),
        }
    }
    Ok(items)
}

/// Reports an entry whose rule would add other items, or none.
fn check_rule(case: &Case<'_>, state: &RunState, seq: u64, e: &RunExtended, findings: &mut Findings) {
    let Cause::Rule(id) = &e.cause else { return };
    let Some(rule) = state.rule(id) else { return };
    let why = match acts(&Objects::new(case.store), state, rule, case.lazy) {
        Ok(Some(Act::Create(items))) if e.pipelines.is_empty() && e.names(&items) => return,
        Ok(None | Some(Act::Conclude(_))) => format!("entry {seq}: the rule {id} creates nothing here"),
        Ok(Some(Act::Create(items))) => {
            format!("entry {seq}: the rule {id} creates something else here, {}", name_items(&items))
        }
        Err(fault) => return report_document(seq, id, &fault, findings),
    };
    findings.report_at(At::entry(seq), Code::Rule, why);
}

/// Reports an entry whose rule would not conclude the run like this. The replay rejects an unknown
/// rule.
pub(super) fn check_conclusion(case: &Case<'_>, state: &RunState, seq: u64, e: &RunConcluded, findings: &mut Findings) {
    let Some(rule) = state.rule(&e.rule) else { return };
    match acts(&Objects::new(case.store), state, rule, case.lazy) {
        Ok(Some(Act::Conclude(concluded))) if is_same_conclusion(&concluded, e) => {}
        Ok(_) => {
            let why = format!("entry {seq}: the rule {} does not conclude the run like this here", e.rule);
            findings.report_at(At::entry(seq), Code::Rule, why);
        }
        Err(fault) => report_document(seq, &e.rule, &fault, findings),
    }
}

/// Returns true if two conclusions agree. Each writer may word `detail` differently.
fn is_same_conclusion(one: &RunConcluded, other: &RunConcluded) -> bool {
    (&one.rule, &one.outcome, one.detail.is_some()) == (&other.rule, &other.outcome, other.detail.is_some())
}

fn report_document(seq: u64, rule: &ItemId, fault: &Fault, findings: &mut Findings) {
    let label = format!("entry {seq}: a document of the rule {rule}");
    findings.report_fault_at(At::entry(seq), Code::RuleDocument, &label, fault);
}

/// Compares a seal with the rules, and returns the rules that stopped, each with the reason.
pub(super) fn check_seal(
    case: &Case<'_>,
    state: &RunState,
    seq: u64,
    stated: &BTreeMap<ItemId, String>,
    findings: &mut Findings,
) -> BTreeMap<ItemId, String> {
    check_rules_done(case, state, seq, findings);
    let at = At::entry(seq);
    match stops(case, state) {
        Err((rule, fault)) => {
            report_document(seq, &rule, &fault, findings);
            stated.clone()
        }
        Ok(found) => {
            for rule in stated.keys().filter(|rule| !found.contains_key(*rule)) {
                findings.report_at(
                    at,
                    Code::Stopped,
                    format!("the seal says that the rule {rule} stopped, and it did not"),
                );
            }
            for rule in found.keys().filter(|rule| !stated.contains_key(*rule)) {
                findings.report_at(at, Code::Stopped, format!("the seal leaves out that the rule {rule} stopped"));
            }
            found
        }
    }
}

/// Returns the rules that stopped in an unsealed run. A rule whose document cannot be read counts
/// as stopped.
pub(super) fn stopped_so_far(case: &Case<'_>, state: &RunState) -> BTreeMap<ItemId, String> {
    stops(case, state).unwrap_or_else(|(rule, fault)| BTreeMap::from([(rule, fault.to_string())]))
}

fn stops(case: &Case<'_>, state: &RunState) -> Result<BTreeMap<ItemId, String>, (ItemId, Fault)> {
    let objects = Objects::new(case.store);
    judge::stopped(state, |_, revision| read_document(&objects, revision, case.lazy))
}

/// Reports a rule that still had something to do when the run sealed itself.
fn check_rules_done(case: &Case<'_>, state: &RunState, seq: u64, findings: &mut Findings) {
    if state.is_ended() {
        return;
    }
    let objects = Objects::new(case.store);
    let waits = |rule: &Rule| {
        Ok(match acts(&objects, state, rule, case.lazy)? {
            Some(Act::Create(items)) => {
                Some(format!("the run was sealed before its rules had created {}", name_items(&items)))
            }
            Some(Act::Conclude(RunConcluded { rule, outcome, .. })) => {
                Some(format!("the run was sealed before its rule {rule} concluded it as {outcome}"))
            }
            None => judge::stopped_short(state, rule, |_, revision| read_document(&objects, revision, case.lazy))?
                .map(|why| format!("the run was sealed although its rule {} had stopped short: {why}", rule.id())),
        })
    };
    for rule in &state.rules {
        match waits(rule) {
            Ok(why) => why.into_iter().for_each(|why| findings.report_at(At::entry(seq), Code::RuleWaits, why)),
            Err(fault) => report_document(seq, rule.id(), &fault, findings),
        }
    }
}

fn name_items(items: &[Item]) -> String {
    let first = items.first().map_or("nothing", |item| item.id.as_str());
    match items.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    }
}

fn acts(objects: &Objects, state: &RunState, rule: &Rule, lazy: bool) -> Result<Option<Act>, Fault> {
    judge::acts(state, rule, |_: &FilePath, revision: &Revision| read_document(objects, revision, lazy))
}

fn read_document(objects: &Objects, revision: &Revision, lazy: bool) -> Result<Vec<u8>, Fault> {
    objects.read_product(&revision.product, lazy, MAX_CONDITION_BYTES)
}

/// Reports why the bytes of the plan or of an item cannot be read, or are others.
pub(super) fn report_unread(
    read: Result<Vec<u8>, Fault>,
    at: At<'_>,
    label: &str,
    findings: &mut Findings,
) -> Result<Vec<u8>, Unread> {
    read.map_err(|fault| {
        let code = if matches!(fault, Fault::Differs { .. }) { Code::Bytes } else { Code::BytesMissing };
        findings.report_fault_at(at, code, label, &fault);
        Unread
    })
}
