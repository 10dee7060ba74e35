//! Checks an entry that another writer appended, against the run that it follows.
//!
//! A driver of a shared run builds on the entries of others. So each of them must pass the rows
//! that `verify` makes of a whole run, as far as they are about this entry. The cost is in
//! proportion to the entry, and not to the run.

use crate::git::store::Store;
use crate::ledger::merkle::Frontier;
use crate::model::digest::Digest;
use crate::model::entry::{Event, RunSealed};
use crate::model::format;
use crate::model::name::RunId;
use crate::model::state::RunState;

use super::codes::Code;
use super::findings::{At, Findings};
use super::handoff::Handoff;
use super::incoming::Further;
use super::objects::Objects;
use super::pipelines::SealedPipelines;
use super::protected::ProtectedFiles;
use super::reader::Link;
use super::run_chain::RunChain;
use super::{Case, Options, State, chain, content, growth, manifest, reuse, tree};

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
    let case = Case::at(store, run, &reference, &options, chain_of(store, state, next));
    let mut findings = case.chain.tree_findings.clone();
    chain::check_entry(&next.entry, &mut findings);
    SealedPipelines::read(&case, &mut findings).check(state, next.entry.seq, &next.entry.event, &mut findings);
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
    let manifest = tree::slot(&Objects::new(store), next.tree, &state.layout().manifest(&e.item));
    let mut protected = ProtectedFiles::new(&case);
    protected.note_manifest(&e.item, &manifest);
    protected.check(state, next.entry.seq, e, &mut findings);
    refuse(&case, findings)
}

/// Returns a chain of this entry alone, with the blobs that it is about.
fn chain_of(store: &Store, state: &RunState, next: &Further) -> RunChain {
    let link = Link {
        commit: next.commit,
        tree: next.tree,
        before: Some(next.before),
        parents: Vec::new(),
        hash: next.hash,
        entry: next.entry.clone(),
        signer: Ok(next.key.clone()),
        verified_before: false,
    };
    let mut chain = RunChain::of_next(store, link, state.layout());
    if let Some(digest) = pipeline(state, &next.entry.event) {
        let held = tree::slot(&Objects::new(store), next.tree, &format::pipeline_path(digest));
        chain.sealed.pipelines.insert(digest, (next.entry.seq, held));
    }
    chain
}

/// Returns the pipeline of the item that the event is about, if it has one.
fn pipeline(state: &RunState, event: &Event) -> Option<Digest> {
    let (item, _) = event.item()?;
    let name = state.graph.item(state.graph.position(item)?).pipeline()?;
    state.pipelines.get(name).copied()
}

fn check_event(case: &Case<'_>, state: &RunState, so_far: &Frontier, next: &Further, findings: &mut Findings) {
    let seq = next.entry.seq;
    let mut handoff = Handoff::new(case.shallow);
    for (link, after) in case.chain.with_trees() {
        match &link.entry.event {
            Event::ItemFired(fired) => {
                handoff.check_dispatch(state, seq, fired);
                manifest::check_next(case, state, (seq, fired), &after.manifest, findings);
            }
            Event::ItemReconciled(e) => {
                let objects = Objects::new(case.store);
                let held = tree::slot(&objects, next.tree, &state.layout().manifest(&e.item));
                handoff.add_imports(&Vec::from_iter(reuse::examine_next(case, state.submitted.base, &held)));
            }
            Event::RunConcluded(e) => {
                growth::check_conclusion(case, state, seq, e, findings);
            }
            Event::RunExtended(_) => growth::check_next(case, state, link, after, findings),
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
