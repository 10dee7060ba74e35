//! How a run grew: the rules that were sealed at submit, the items that were added, and whether the rules added just these.
//!
//! Part of the row `plan`.

use std::collections::BTreeMap;

use gix::objs::Kind;

use crate::model::bounds::{self, Meter};
use crate::model::digest::Digest;
use crate::model::document::Revision;
use crate::model::entry::{Cause, RunConcluded, RunExtended, RunSubmitted};
use crate::model::extension::definition;
use crate::model::judge::{self, Act};
use crate::model::name::{FilePath, ItemId};
use crate::model::plan::{Item, Plan};
use crate::model::rule::{self, MAX_CONDITION_BYTES, Rule};
use crate::model::state::RunState;

use super::Case;
use super::codes::Code;
use super::findings::Findings;
use super::objects::{Fault, Objects};
use super::reader::Link;
use super::run_chain::After;

/// What was found, and how much was read to find it.
pub(super) struct Tally<'a> {
    pub(super) findings: &'a mut Findings,
    /// What all `item.json` come to.
    pub(super) meter: &'a mut Meter,
}

/// Evidence that cannot be read, so that nothing after it can be replayed.
pub(super) struct Unread;

/// Reads the rules in force: the plan's own and those that the queue added at submit.
pub(super) fn rules(
    case: &Case<'_>,
    submitted: &RunSubmitted,
    plan: &Plan,
    findings: &mut Findings,
) -> Result<Vec<Rule>, Unread> {
    let Some(digest) = submitted.rules else { return Ok(plan.rules.clone()) };
    let held = case.chain.rules.read(&Objects::new(case.store), case.lazy, bounds::PLAN);
    let bytes = read(held, (Code::RulesUnread, "rules.json"), findings)?;
    if Digest::of(&bytes) != digest {
        let why = format!("rules.json is {}, submitted was {}", Digest::of(&bytes).short(), digest.short());
        findings.report(Code::RulesDigest, why);
    }
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
        findings.report(Code::RulesTwice, format!("the plan and its queue have both a rule {id:?}"));
        Unread
    })
}

/// Takes in a `run.extended`, which is held against its items and, where a rule added them, against the rule.
pub(super) fn extend(
    case: &Case<'_>,
    state: &mut RunState,
    (link, after): (&Link, &After),
    e: &RunExtended,
    tally: Tally<'_>,
) -> Result<(), Unread> {
    let Tally { findings, meter } = tally;
    let seq = link.entry.seq;
    let objects = Objects::new(case.store);
    let mut items = Vec::with_capacity(e.items.len());
    for (id, digest) in &e.items {
        let whose = format!("entry {seq}: item.json of item {id}");
        let held = after.definitions.get(id).cloned().unwrap_or_default();
        let held = held.read_with(case.lazy, |oid| objects.metered(oid, Kind::Blob, bounds::PLAN, meter));
        let bytes = read(held, (Code::ItemUnread, &whose), findings)?;
        if Digest::of(&bytes) != *digest {
            findings.report(Code::ItemDigest, format!("{whose} is not the one that the entry names"));
            continue;
        }
        match crate::plan::parse_item(&bytes) {
            Ok(item) if definition(&item) == bytes => items.push(item),
            Ok(_) => findings.report(Code::ItemInvalid, format!("{whose} is no normalised item")),
            Err(_) => findings.report(Code::ItemInvalid, format!("{whose} is no item")),
        }
    }
    // An entry that is not legal changes nothing.
    if let Cause::Rule(id) = &e.cause
        && let Some(rule) = state.rule(id)
        && !creates((case, &objects), state, rule, (seq, e), findings)
    {
        return Ok(());
    }
    let extended = state.extend(e, items);
    extended.unwrap_or_else(|illegal| findings.report(Code::Transition, format!("entry {seq}: {illegal}")));
    Ok(())
}

/// Returns true unless the rule creates something else here than a `run.extended` says, or nothing.
///
/// If a document that the rule looks at cannot be read, that is the finding, and the entry counts.
fn creates(
    (case, objects): (&Case<'_>, &Objects),
    state: &RunState,
    rule: &Rule,
    (seq, e): (u64, &RunExtended),
    findings: &mut Findings,
) -> bool {
    let id = rule.id();
    let why = match acts(objects, state, rule, case.lazy) {
        // By the digests of what was normalised: one item can be written in many ways.
        Ok(Some(Act::Create(items))) if RunExtended::of(e.cause.clone(), &items) == *e => return true,
        Ok(None | Some(Act::Conclude(_))) => format!("entry {seq}: the rule {id} creates nothing here"),
        Ok(Some(Act::Create(items))) => {
            format!("entry {seq}: what the rule {id} creates here is {}", some_of(&items))
        }
        Err(fault) => {
            findings.report_fault(Code::RuleDocument, &format!("entry {seq}: what the rule {id} looks at"), &fault);
            return true;
        }
    };
    findings.report(Code::Rule, why);
    false
}

/// Returns true unless the rule that a `run.concluded` names does not have the run say this here.
///
/// If a document that the rule looks at cannot be read, that is the finding, and the entry counts. So does the
/// entry of a rule that the run does not have, which the replay rejects.
pub(super) fn concludes(
    case: &Case<'_>,
    state: &RunState,
    seq: u64,
    e: &RunConcluded,
    findings: &mut Findings,
) -> bool {
    let Some(rule) = state.rule(&e.rule) else { return true };
    match acts(&Objects::new(case.store), state, rule, case.lazy) {
        Ok(Some(Act::Conclude(concluded))) if is_same_conclusion(&concluded, e) => true,
        Ok(_) => {
            let why = format!("entry {seq}: the rule {} does not have the run say this here", e.rule);
            findings.report(Code::Rule, why);
            false
        }
        Err(fault) => {
            let what = format!("entry {seq}: what the rule {} looks at", e.rule);
            findings.report_fault(Code::RuleDocument, &what, &fault);
            true
        }
    }
}

/// Returns true if two conclusions agree. The words of a `detail` are free: each writer has its own.
fn is_same_conclusion(one: &RunConcluded, other: &RunConcluded) -> bool {
    (&one.rule, &one.outcome, one.detail.is_some()) == (&other.rule, &other.outcome, other.detail.is_some())
}

/// Holds a seal against the rules of the run, and returns those that stopped, each with the reason.
///
/// What a seal leaves out is found nevertheless: runs that an older version sealed say nothing of it.
pub(super) fn check_seal(
    case: &Case<'_>,
    state: &RunState,
    stated: &BTreeMap<ItemId, String>,
    findings: &mut Findings,
) -> BTreeMap<ItemId, String> {
    check_rules_done(case, state, findings);
    match stops(case, state) {
        Err((rule, fault)) => {
            findings.report_fault(Code::RuleDocument, &format!("at the seal: what the rule {rule} looks at"), &fault);
            stated.clone()
        }
        Ok(found) => {
            for rule in stated.keys().filter(|rule| !found.contains_key(*rule)) {
                findings.report(Code::Stopped, format!("the seal says that the rule {rule} stopped, and it did not"));
            }
            for rule in found.keys().filter(|rule| !stated.is_empty() && !stated.contains_key(*rule)) {
                findings.report(Code::Stopped, format!("the seal leaves out that the rule {rule} stopped"));
            }
            found
        }
    }
}

/// Finds the rules that stopped in a run that is not sealed. One whose document cannot be read counts among them.
pub(super) fn stopped_so_far(case: &Case<'_>, state: &RunState) -> BTreeMap<ItemId, String> {
    let unread = |(rule, fault): (ItemId, Fault)| BTreeMap::from([(rule, fault.to_string())]);
    stops(case, state).unwrap_or_else(unread)
}

fn stops(case: &Case<'_>, state: &RunState) -> Result<BTreeMap<ItemId, String>, (ItemId, Fault)> {
    let objects = Objects::new(case.store);
    judge::stopped(state, |_, revision| looked_into(&objects, revision, case.lazy))
}

/// Refuses that a run sealed by itself while a rule had something to create.
fn check_rules_done(case: &Case<'_>, state: &RunState, findings: &mut Findings) {
    if state.is_ended() {
        return;
    }
    let objects = Objects::new(case.store);
    for rule in &state.rules {
        match acts(&objects, state, rule, case.lazy) {
            Ok(None) => {
                match judge::stopped_short(state, rule, |_, revision| looked_into(&objects, revision, case.lazy)) {
                    Ok(None) => {}
                    Ok(Some(why)) => {
                        let id = rule.id();
                        let why = format!("the run was sealed although its rule {id} had stopped short: {why}");
                        findings.report(Code::RuleWaits, why);
                    }
                    Err(fault) => {
                        let what = format!("at the seal: what the rule {} looks at", rule.id());
                        findings.report_fault(Code::RuleDocument, &what, &fault);
                    }
                }
            }
            Ok(Some(Act::Create(items))) => {
                let why = format!("the run was sealed before its rules had created {}", some_of(&items));
                findings.report(Code::RuleWaits, why);
            }
            Ok(Some(Act::Conclude(concluded))) => {
                let RunConcluded { rule, outcome, .. } = concluded;
                findings
                    .report(Code::RuleWaits, format!("the run was sealed before its rule {rule} had it say {outcome}"));
            }
            Err(fault) => {
                let what = format!("at the seal: what the rule {} looks at", rule.id());
                findings.report_fault(Code::RuleDocument, &what, &fault);
            }
        }
    }
}

/// Names items that are created together.
fn some_of(items: &[Item]) -> String {
    let first = items.first().map_or("nothing", |item| item.id.as_str());
    match items.len() {
        0 | 1 => first.to_owned(),
        more => format!("{first} and {} more", more - 1),
    }
}

fn acts(objects: &Objects, state: &RunState, rule: &Rule, lazy: bool) -> Result<Option<Act>, Fault> {
    judge::acts(state, rule, |_: &FilePath, revision: &Revision| looked_into(objects, revision, lazy))
}

/// Reads a document that a rule looks into.
fn looked_into(objects: &Objects, revision: &Revision, lazy: bool) -> Result<Vec<u8>, Fault> {
    let is = &revision.product;
    let bytes = objects.read_of(is.oid, Kind::Blob, MAX_CONDITION_BYTES).map_err(|fault| fault.of_blob(lazy))?;
    if Digest::of(&bytes) != is.sha256 {
        return Err(Fault::Damaged(is.oid, "its bytes are not those that the entry names".to_owned()));
    }
    Ok(bytes)
}

fn read(
    held: Option<Result<Vec<u8>, Fault>>,
    (code, whose): (Code, &str),
    findings: &mut Findings,
) -> Result<Vec<u8>, Unread> {
    match held {
        Some(Ok(bytes)) => return Ok(bytes),
        Some(Err(fault)) => findings.report_fault(code, whose, &fault),
        None => findings.report(code, format!("{whose} is not in the tree")),
    }
    Err(Unread)
}
