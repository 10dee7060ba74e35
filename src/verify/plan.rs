//! The row `plan`: the run is what its plan said, and every stored state is what the entries give.

use gix::objs::Kind;

use crate::model::bounds::{self, Meter};
use crate::model::digest::Digest;
use crate::model::entry::{Event, RunSubmitted};
use crate::model::format::FAN_OUT_ABOVE;
use crate::model::graph::Graph;
use crate::model::name::ItemId;
use crate::model::plan::Plan;
use crate::model::state::RunState;

use super::codes::Code;
use super::findings::{Findings, Verdict, counted};
use super::growth;
use super::handoff::Handoff;
use super::imports;
use super::objects::{Fault, Objects, each};
use super::pipelines;
use super::reader::{Link, short};
use super::run_chain::After;
use super::taken::Taken;
use super::tree::Slot;
use super::{Case, Options, State};

/// The rows `plan` and `handoff`, and what the others need of the replay.
pub(super) struct Replay {
    pub(super) verdict: Verdict,
    pub(super) handoff: Verdict,
    pub(super) state: Option<RunState>,
}

impl Replay {
    fn without_plan(verdict: Verdict) -> Self {
        let why = match verdict.state {
            State::Failed => "the plan cannot be read".to_owned(),
            _ => verdict.detail.clone(),
        };
        let handoff = if verdict.incomplete { Verdict::incomplete(why) } else { Verdict::not_applicable(why) };
        Self { verdict, handoff, state: None }
    }
}

/// Reads the plan, replays the entries over it, and holds the run against what the verifier expects of it.
pub(super) fn replay(case: &Case<'_>, taken: &[Taken]) -> Replay {
    let mut replay = told(case, taken);
    let expects = case.options.plan.is_some() || case.options.base.is_some();
    if let (true, true, Some(submitted)) = (expects, replay.verdict.state != State::Failed, case.chain.submitted()) {
        let sealed = case.chain.plan.read(&Objects::new(case.store), case.lazy, bounds::PLAN);
        let unexpected = unexpected(submitted, sealed.and_then(Result::ok).as_deref(), case.options);
        replay.verdict = unexpected.unwrap_or(replay.verdict);
    }
    replay
}

fn told(case: &Case<'_>, taken: &[Taken]) -> Replay {
    if let Some(cut_off) = case.cut_off() {
        return Replay::without_plan(cut_off);
    }
    let Some(submitted) = case.chain.submitted() else {
        return Replay::without_plan(Verdict::not_applicable("there is no entry 0 that names a plan"));
    };
    let mut findings = Findings::default();
    let Some(plan) = read(case, submitted, &mut findings) else {
        return Replay::without_plan(findings.verdict(case.shallow, String::new));
    };
    check_submitted(case, submitted, &plan, &mut findings);
    let Ok(rules) = growth::rules(case, submitted, &plan, &mut findings) else {
        return Replay::without_plan(findings.verdict(case.shallow, String::new));
    };
    pipelines::check_submitted(submitted, &plan, &rules, &mut findings);
    imports::check_submitted(submitted, &plan, &mut findings);
    let mut sealed = pipelines::Sealed::read(case, &mut findings);
    let graph = Graph::new(&plan);
    check_graph(&graph, &mut findings);
    let mut state = RunState::new(submitted.clone(), graph).with_rules(rules);
    let mut handoff = Handoff::new(case.shallow);
    handoff.take(taken);
    let mut expected = Vec::new();
    let mut unread = false;
    let mut meter = Meter::default();
    let mut stopped = None;
    for (link, after) in case.chain.with_trees().skip(1) {
        match &link.entry.event {
            Event::ItemFired(fired) => handoff.see(&state, fired),
            Event::RunSealed(e) => stopped = Some(growth::check_seal(case, &state, &e.stopped, &mut findings)),
            // An entry that is not legal changes nothing.
            Event::RunConcluded(e) if !growth::concludes(case, &state, link.entry.seq, e, &mut findings) => continue,
            Event::RunExtended(extended) => {
                let tally = growth::Tally { findings: &mut findings, meter: &mut meter };
                unread = growth::extend(case, &mut state, (link, after), extended, tally).is_err();
                if unread {
                    break;
                }
                continue;
            }
            _ => {}
        }
        if !link.vouched {
            sealed.check(&state, link.entry.seq, &link.entry.event, &mut findings);
        }
        if let Err(illegal) = state.apply(&link.entry.event) {
            findings.report(Code::Transition, format!("entry {}: {illegal}", link.entry.seq));
        } else if let Some((item, _)) = link.entry.event.item() {
            let at = state.graph.position(item).expect("only what the run has can change");
            if !link.vouched {
                expected.push(Expected { item, link, after, bytes: state.items[at].canonical() });
            }
        }
    }
    state.stopped = stopped.unwrap_or_else(|| growth::stopped_so_far(case, &state));
    check_states(case, &expected, &mut findings);
    let ended = state.items.iter().filter(|item| item.phase.is_terminal()).count();
    let items = counted(state.items.len(), "item", "items");
    let detail = format!("{ended} of {items} accounted for, every transition legal{}", sealed.detail());
    let verdict = findings.verdict(case.shallow, || detail);
    if unread {
        return Replay::without_plan(verdict);
    }
    Replay { verdict, handoff: handoff.verdict(), state: Some(state) }
}

/// Reads the plan that entry 0 seals; none comes with a finding.
fn read(case: &Case<'_>, submitted: &RunSubmitted, findings: &mut Findings) -> Option<Plan> {
    let bytes = match case.chain.plan.read(&Objects::new(case.store), case.lazy, bounds::PLAN) {
        Some(Ok(bytes)) => bytes,
        Some(Err(fault)) => {
            findings.report_fault(Code::PlanUnread, "plan.json", &fault);
            return None;
        }
        None => {
            findings.report(Code::PlanUnread, "the tree holds no plan.json".to_owned());
            return None;
        }
    };
    let digest = Digest::of(&bytes);
    if digest != submitted.plan {
        let why = format!("plan.json is {}, submitted was {}", digest.short(), submitted.plan.short());
        findings.report(Code::PlanDigest, why);
    }
    let plan = crate::plan::parse(&bytes);
    plan.map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        findings.report(Code::PlanInvalid, format!("plan.json is no plan: {first}"));
    })
    .ok()
}

/// Holds what entry 0 says against the plan and against what the verifier asked for.
fn check_submitted(case: &Case<'_>, submitted: &RunSubmitted, plan: &Plan, findings: &mut Findings) {
    let artifacts = plan.artifacts.keys().eq(submitted.artifacts.keys());
    let ruled = !plan.rules.is_empty() || submitted.rules.is_some();
    let fan_out = plan.items.len() > FAN_OUT_ABOVE || plan.open_ended || ruled;
    let held = [
        (plan.id == *case.run, "the plan is of another run"),
        (plan.open_ended == submitted.open_ended, "openEnded is not the plan's"),
        (artifacts, "the artifacts sealed at submit are not the plan's"),
        (fan_out == submitted.fan_out, "fanOut is not what follows from the plan"),
        (submitted.base.0.kind() == case.store.hash_kind(), "the base is no object name of the repository's format"),
        (submitted.object_format == case.store.object_format(), "the object format is not the repository's"),
    ];
    for (_, why) in held.iter().filter(|(holds, _)| !holds) {
        findings.report(Code::PlanEntry, format!("entry 0: {why}"));
    }
}

/// Says what of the plan and the base that the verifier expects entry 0 does not have; `sealed` are the bytes of the plan, where they are
/// at hand. The same plan in another form is the same plan.
pub(super) fn unexpected(submitted: &RunSubmitted, sealed: Option<&[u8]>, options: &Options) -> Option<Verdict> {
    let (mut codes, mut why) = (Vec::new(), Vec::new());
    if let Some(given) = &options.plan
        && Digest::of(given) != submitted.plan
        && !sealed.is_some_and(|sealed| crate::plan::is_same(sealed, given))
    {
        let (is, wanted) = (submitted.plan.short(), Digest::of(given).short());
        codes.push(Code::OtherPlan);
        why.push(format!("the run is of plan {is}, not of the given one, {wanted}"));
    }
    if let Some(given) = options.base.filter(|given| *given != submitted.base) {
        codes.push(Code::OtherBase);
        why.push(format!("the run starts from {}, not from {}", short(submitted.base), short(given)));
    }
    (!why.is_empty()).then(|| Verdict::mismatch(codes, why.join("; ")))
}

/// Refuses a plan that no submit would have let through and that a replay could be fooled with.
fn check_graph(graph: &Graph, findings: &mut Findings) {
    for (at, id) in graph.dangling() {
        findings
            .report(Code::PlanItems, format!("item {} depends on {id}, which is not in the plan", graph.item(*at).id));
    }
    for (at, item) in graph.items().iter().enumerate() {
        if graph.position(&item.id) != Some(at) {
            findings.report(Code::PlanItems, format!("the plan has two items {}", item.id));
        }
    }
}

/// Holds every stored state against the one that the replay gives. It is known by its bytes, so that no blob is needed for
/// it; a blob that is here is read all the same, because a damaged one would not be noticed otherwise.
fn check_states(case: &Case<'_>, expected: &[Expected<'_>], findings: &mut Findings) {
    let checked = each(case.store, expected, |objects, state| {
        let given = objects.hash(Kind::Blob, &state.bytes);
        let stored = match &state.after.state {
            Slot::Blob(stored) if given == Some(*stored) => *stored,
            Slot::Blob(_) | Slot::Nothing => return Err(Wrong::Differs),
            Slot::Unread(fault) => return Err(Wrong::Fault(fault.clone())),
        };
        match objects.read(stored, Kind::Blob) {
            Err(Fault::Missing(_)) if case.lazy => Ok(()),
            read => read.map(drop).map_err(|fault| Wrong::Fault(fault.of_blob(case.lazy))),
        }
    });
    for (state, checked) in expected.iter().zip(checked) {
        let whose = || format!("entry {}: state.json of item {}", state.link.entry.seq, state.item);
        match checked {
            Ok(()) => {}
            Err(Wrong::Differs) => findings.report(Code::State, format!("{} is not what the entries give", whose())),
            Err(Wrong::Fault(fault)) => findings.report_fault(Code::State, &whose(), &fault),
        }
    }
}

/// The state that an entry gives its item.
struct Expected<'a> {
    item: &'a ItemId,
    link: &'a Link,
    after: &'a After,
    bytes: Vec<u8>,
}

enum Wrong {
    Differs,
    Fault(Fault),
}
