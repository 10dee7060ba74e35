//! The row `plan`: the run followed its plan.

use crate::model::bounds::{self, Meter};
use crate::model::digest::Digest;
use crate::model::entry::{Event, RunSubmitted};
use crate::model::graph::Graph;
use crate::model::item_index::ItemVec;
use crate::model::plan::{Item, Plan};
use crate::model::state::RunState;

use super::codes::Code;
use super::findings::{At, Findings, Verdict, counted};
use super::growth;
use super::handoff::Handoff;
use super::imports;
use super::imports::Imported;
use super::objects::Objects;
use super::pipelines;
use super::protected::{NotRecomputed, ProtectedFiles};
use super::reader::{Link, short};
use super::{Case, Options, State};

/// The rows `plan` and `handoff`, and the state at the end of the replay.
pub(super) struct Replay {
    pub(super) verdict: Verdict,
    pub(super) handoff: Verdict,
    /// The state after the last entry, or after the first finding.
    state: Option<RunState>,
    /// True if every entry was replayed without a finding.
    is_whole: bool,
    pub(super) not_recomputed: Vec<NotRecomputed>,
}

impl Replay {
    /// Returns the state after the last entry, if every entry was replayed without a finding.
    pub(super) fn state(&self) -> Option<&RunState> {
        self.state.as_ref().filter(|_| self.is_whole)
    }

    /// Returns the state like [`Replay::state`].
    pub(super) fn into_state(self) -> Option<RunState> {
        self.state.filter(|_| self.is_whole)
    }

    /// Returns the items of the run as far as it was replayed.
    pub(super) fn items(&self) -> Option<&ItemVec<Item>> {
        self.state.as_ref().map(|state| state.graph.items())
    }

    fn without_plan(verdict: Verdict) -> Self {
        let why = match verdict.state {
            State::Failed => "the plan cannot be read".to_owned(),
            _ => verdict.detail.clone(),
        };
        let handoff = if verdict.incomplete { Verdict::incomplete(why) } else { Verdict::not_applicable(why) };
        Self { verdict, handoff, state: None, is_whole: false, not_recomputed: Vec::new() }
    }
}

/// Replays the entries on the plan, and compares the run with the verifier's expectations.
pub(super) fn replay(case: &Case<'_>, imports: &[Imported]) -> Replay {
    let mut replay = replay_entries(case, imports);
    let expects = case.options.plan.is_some() || case.options.base.is_some();
    if let (true, true, Some(submitted)) = (expects, replay.verdict.state != State::Failed, case.chain.submitted()) {
        let sealed = Objects::new(case.store).read_product(&submitted.plan, case.lazy, bounds::PLAN).ok();
        let unexpected = unexpected(submitted, sealed.as_deref(), case.options);
        replay.verdict = unexpected.unwrap_or(replay.verdict);
    }
    replay
}

struct Prepared {
    state: RunState,
    sealed: pipelines::SealedPipelines,
    findings: Findings,
}

/// Reads the plan, the rules and the pipelines. Returns a verdict if they cannot be read, or after
/// a finding.
fn prepare(case: &Case<'_>) -> Result<Prepared, Verdict> {
    if let Some(cut_off) = case.cut_off() {
        return Err(cut_off);
    }
    let Some(submitted) = case.chain.submitted() else {
        return Err(Verdict::not_applicable("there is no entry 0 that names a plan"));
    };
    let mut findings = Findings::default();
    let Some(plan) = read(case, submitted, &mut findings) else {
        return Err(findings.verdict(case.shallow, String::new));
    };
    check_submitted(case, submitted, &plan, &mut findings);
    let Ok(rules) = growth::rules(case, submitted, &plan, &mut findings) else {
        return Err(findings.verdict(case.shallow, String::new));
    };
    pipelines::check_submitted(submitted, &plan, &rules, &mut findings);
    imports::check_submitted(submitted, &plan, &mut findings);
    let sealed = pipelines::SealedPipelines::read(case, &pipelines::by_name(&case.chain), &mut findings);
    let state = RunState::new(submitted.clone(), &plan);
    check_graph(&state.graph, &mut findings);
    if findings.is_contradicted() {
        return Err(findings.verdict(case.shallow, String::new));
    }
    Ok(Prepared { state: state.with_rules(rules), sealed, findings })
}

fn replay_entries(case: &Case<'_>, imports: &[Imported]) -> Replay {
    let Prepared { mut state, mut sealed, mut findings } = match prepare(case) {
        Ok(prepared) => prepared,
        Err(verdict) => return Replay::without_plan(verdict),
    };
    let mut handoff = Handoff::new(case.shallow);
    let mut unread = false;
    let mut meter = Meter::default();
    let mut stopped = None;
    let mut protected = ProtectedFiles::new(case);
    for link in case.chain.links.iter().skip(1) {
        // Entries after the first finding have no defined meaning.
        if findings.is_contradicted() || handoff.is_contradicted() {
            break;
        }
        let seq = link.entry.seq;
        check_entry(case, &state, link, &mut handoff, &mut findings);
        match &link.entry.event {
            Event::ItemFired(fired) => protected.note_manifest(&fired.item, &fired.manifest),
            Event::RunSealed(e) => stopped = Some(growth::check_seal(case, &state, seq, &e.stopped, &mut findings)),
            Event::RunExtended(_) => {
                let tally = growth::Tally { findings: &mut findings, meter: &mut meter };
                unread = growth::apply_extension(case, &mut state, link, tally).is_err();
                if unread {
                    break;
                }
                continue;
            }
            _ => {}
        }
        if !link.verified_before {
            sealed.check(&state, seq, &link.entry.event, &mut findings);
        }
        if let Err(illegal) = state.apply_signed(&link.entry.event, link.signer.as_deref().ok()) {
            findings.report_at(At::entry(seq), Code::Transition, format!("entry {seq}: {illegal}"));
        } else if let Event::ItemReconciled(e) = &link.entry.event {
            state.note_allowance(&link.entry.event, link.signer.as_deref().ok());
            if !link.verified_before {
                protected.check(&state, seq, e, &mut findings);
            }
        }
    }
    state.stopped = stopped.unwrap_or_else(|| growth::stopped_so_far(case, &state));
    let (of_protected, not_recomputed) = protected.conclude(&mut findings);
    let detail = format!("{}{}{of_protected}", accounted_for(&state), sealed.detail());
    handoff.add_imports(imports);
    let handoff = handoff.verdict();
    let verdict = findings.verdict(case.shallow, || detail).open_if(!not_recomputed.is_empty());
    let is_whole = !unread && verdict.state != State::Failed && handoff.state != State::Failed;
    let handoff = if unread && verdict.incomplete { Verdict::incomplete(verdict.detail.clone()) } else { handoff };
    Replay { verdict, handoff, state: Some(state), is_whole, not_recomputed }
}

/// Checks an entry that follows `state`, as far as this takes no other entry.
pub(super) fn check_entry(
    case: &Case<'_>,
    state: &RunState,
    link: &Link,
    handoff: &mut Handoff,
    findings: &mut Findings,
) {
    let seq = link.entry.seq;
    match &link.entry.event {
        Event::ItemFired(fired) => handoff.check_dispatch(state, seq, fired),
        Event::RunConcluded(e) => growth::check_conclusion(case, state, seq, e, findings),
        _ => {}
    }
}

fn accounted_for(state: &RunState) -> String {
    let ended = state.items.iter().filter(|item| item.phase.is_terminal()).count();
    let items = counted(state.items.len(), "item", "items");
    format!("{ended} of {items} accounted for, every transition legal")
}

/// Reads the sealed plan; returns `None` after reporting a finding.
fn read(case: &Case<'_>, submitted: &RunSubmitted, findings: &mut Findings) -> Option<Plan> {
    let read = Objects::new(case.store).read_product(&submitted.plan, case.lazy, bounds::PLAN);
    let bytes = growth::report_unread(read, At::entry(0), "plan.json", findings).ok()?;
    let plan = crate::plan::parse(&bytes);
    plan.map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        findings.report(Code::PlanInvalid, format!("plan.json is not a valid plan: {first}"));
    })
    .ok()
}

/// Compares entry 0 with the plan and the repository.
fn check_submitted(case: &Case<'_>, submitted: &RunSubmitted, plan: &Plan, findings: &mut Findings) {
    let artifacts = plan.artifacts.keys().eq(submitted.artifacts.keys());
    let requirements = [
        (plan.id == *case.run, "the plan is of another run"),
        (artifacts, "the artifacts sealed at submit are not the plan's"),
        (submitted.base.0.kind() == case.store.hash_kind(), "the base does not have the repository's object format"),
    ];
    for (_, why) in requirements.iter().filter(|(holds, _)| !holds) {
        findings.report(Code::PlanEntry, format!("entry 0: {why}"));
    }
}

/// Compares entry 0 with the plan and base that the verifier expects.
///
/// `sealed` are the bytes of the plan, if known: the same plan in another form is accepted.
pub(super) fn unexpected(submitted: &RunSubmitted, sealed: Option<&[u8]>, options: &Options) -> Option<Verdict> {
    let (mut codes, mut why) = (Vec::new(), Vec::new());
    if let Some(given) = &options.plan
        && Digest::compute(given) != submitted.plan.sha256
        && !sealed.is_some_and(|sealed| crate::plan::is_same(sealed, given))
    {
        let (is, expected) = (submitted.plan.sha256.short(), Digest::compute(given).short());
        codes.push(Code::OtherPlan);
        why.push(format!("the run is of plan {is}, not of the given one, {expected}"));
    }
    if let Some(given) = options.base.filter(|given| *given != submitted.base) {
        codes.push(Code::OtherBase);
        why.push(format!("the run starts from {}, not from {}", short(submitted.base), short(given)));
    }
    (!why.is_empty()).then(|| Verdict::fails(codes, why.join("; ")))
}

/// Rejects a plan that submit would reject and that could mislead a replay.
fn check_graph(graph: &Graph, findings: &mut Findings) {
    for (at, id) in graph.dangling() {
        findings.report(
            Code::PlanInvalid,
            format!("item {} depends on {id}, which is not in the plan", graph.item(*at).id),
        );
    }
    for (at, item) in graph.items().indexed() {
        if graph.position(&item.id) != Some(at) {
            findings.report_at(At::item(&item.id), Code::PlanInvalid, format!("the plan has two items {}", item.id));
        }
    }
}
