//! Checks an entry that another writer appended, against the run that it follows.
//!
//! A driver of a shared run builds on the entries of others. So each of them must pass the rows
//! that `verify` makes of a whole run, as far as they are about this entry. The cost is in
//! proportion to the entry, and not to the run.

use crate::git::store::Store;
use crate::ledger::merkle::Frontier;
use crate::model::entry::{Event, Product, RunSealed};
use crate::model::format;
use crate::model::name::RunId;
use crate::model::state::RunState;

use super::codes::Code;
use super::findings::{At, Findings};
use super::handoff::Handoff;
use super::incoming::Further;
use super::pipelines::SealedPipelines;
use super::protected::ProtectedFiles;
use super::reader::Link;
use super::run_chain::RunChain;
use super::{Case, Options, State, chain, content, growth, manifest, pipelines, plan, reuse};

/// Checks an entry before it is applied to `state`; returns the first fault.
///
/// `so_far` are the entries before it. Its place, signature and role were checked by
/// [`super::read_further`]; whether it is legal is decided by the state.
pub fn check_next(
    store: &Store,
    run: &RunId,
    state: &RunState,
    so_far: &Frontier,
    next: &Further,
) -> Result<(), String> {
    let (reference, options) = (format::run_ref(run), Options::default());
    let case = Case::at(store, run, &reference, &options, RunChain::of_next(link_of(next)));
    let mut findings = Findings::default();
    chain::check_entry(&next.entry, &mut findings);
    let mut by_name = pipelines::by_name(&case.chain);
    by_name.extend(pipeline(state, &next.entry.event).map(|(name, bytes)| (name, (next.entry.seq, bytes))));
    SealedPipelines::read(&case, &by_name, &mut findings).check(
        state,
        next.entry.seq,
        &next.entry.event,
        &mut findings,
    );
    check_event(&case, state, so_far, next, &mut findings);
    refuse(&case, findings)?;
    let content = content::row(&case);
    if content.state == State::Failed { Err(content.detail) } else { Ok(()) }
}

/// Checks an entry after it was applied to `state`: what it records about protected files.
pub fn check_applied(store: &Store, run: &RunId, state: &RunState, next: &Further) -> Result<(), String> {
    let Event::ItemReconciled(e) = &next.entry.event else { return Ok(()) };
    let (reference, options, mut findings) = (format::run_ref(run), Options::default(), Findings::default());
    let case = Case::at(store, run, &reference, &options, RunChain::default());
    let mut protected = ProtectedFiles::new(&case);
    let at = state.graph.position(&e.item);
    if let Some(manifest) = at.and_then(|at| state.items[at].manifest.as_ref()) {
        protected.note_manifest(&e.item, manifest);
    }
    protected.check(state, next.entry.seq, e, &mut findings);
    refuse(&case, findings)
}

fn link_of(next: &Further) -> Link {
    Link {
        commit: next.commit,
        tree: next.tree,
        parents: Vec::new(),
        hash: next.hash,
        entry: next.entry.clone(),
        signer: Ok(next.key.clone()),
        verified_before: false,
    }
}

/// Returns the pipeline of the item that the event is about, if it has one, with its name.
fn pipeline<'s>(state: &'s RunState, event: &Event) -> Option<(&'s str, &'s Product)> {
    let (item, _) = event.item()?;
    let name = state.graph.item(state.graph.position(item)?).pipeline()?;
    state.pipelines.get_key_value(name).map(|(name, bytes)| (name.as_str(), bytes))
}

fn check_event(case: &Case<'_>, state: &RunState, so_far: &Frontier, next: &Further, findings: &mut Findings) {
    let seq = next.entry.seq;
    let mut handoff = Handoff::new(case.shallow);
    for link in &case.chain.links {
        plan::check_entry(case, state, link, &mut handoff, findings);
        match &link.entry.event {
            Event::ItemFired(fired) => manifest::check_next(case, state, (seq, fired), findings),
            Event::ItemReconciled(_) => handoff.add_imports(&Vec::from_iter(reuse::examine_next(case, state))),
            Event::RunExtended(_) => growth::check_next(case, state, link, findings),
            Event::RunSealed(e) => check_seal(case, state, so_far, (seq, e), findings),
            _ => {}
        }
    }
    findings.extend(handoff.findings());
}

fn check_seal(
    case: &Case<'_>,
    state: &RunState,
    so_far: &Frontier,
    (seq, e): (u64, &RunSealed),
    findings: &mut Findings,
) {
    growth::check_seal(case, state, seq, &e.stopped, findings);
    if e.root != so_far.root() {
        let why = "the seal has another root than the entries".to_owned();
        findings.report_at(At::entry(seq), Code::SealRoot, why);
    }
}

/// Returns the first finding. In a partial clone, a missing object is no fault of the entry.
fn refuse(case: &Case<'_>, findings: Findings) -> Result<(), String> {
    let verdict = findings.verdict(case.shallow, String::new);
    if verdict.state == State::Failed { Err(verdict.detail) } else { Ok(()) }
}
