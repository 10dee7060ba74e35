//! The row `lineage`: the thread holds exactly what its source checkpoint held, and the source is
//! valid itself.
//!
//! The chain, signatures and keys of the source are verified, and compared with logs.

use crate::git::store::Store;
use crate::model::bounds::Meter;
use crate::model::entry::{Event, Origin, SourceCheckpoint, ThreadCheckpointed};

use super::{Ancestor, Position, ThreadChain, ThreadVerifier, logs, signatures, tied_runs};
use crate::verify::findings::{Findings, Verdict, counted};
use crate::verify::{Options, SignerSeen, State};

const MAX_ANCESTORS: usize = 1000;

pub(super) struct Lineage {
    pub(super) verdict: Verdict,
    /// True if the row fails only because valid signatures have distrusted keys.
    pub(super) distrust: bool,
    /// The ancestors, the nearest first.
    pub(super) ancestors: Vec<Ancestor>,
    pub(super) sources: Vec<ThreadChain>,
}

/// The faults of ancestors and tied runs.
#[derive(Default)]
pub(super) struct Flaws {
    /// Contradictions and missing evidence.
    pub(super) bad: Findings,
    /// Distrusted keys of valid signatures.
    pub(super) distrusted: Findings,
    pub(super) unknown: Vec<String>,
}

/// Follows a thread to its origin, and verifies the runs that checkpoints are tied to.
pub(super) fn trace(verifier: &ThreadVerifier<'_>, chain: &ThreadChain) -> Lineage {
    let mut lineage = Lineage {
        verdict: Verdict::not_applicable("the chain could not be read to its first entry"),
        distrust: false,
        ancestors: Vec::new(),
        sources: Vec::new(),
    };
    if chain.cut {
        return lineage;
    }
    // The expected signer is that of the thread itself. The keys of its ancestors only have to be
    // known.
    let options = Options {
        signer: None,
        strict_signers: verifier.options.strict_signers || verifier.options.signer.is_some(),
        ..verifier.options.clone()
    };
    let mut wrong = Flaws::default();
    let mut runs = tied_runs::hold(verifier, &options, chain, &mut wrong);
    let mut meter = chain.meter;
    while let Some(beginning) = beginning(lineage.sources.last().unwrap_or(chain)) {
        if lineage.ancestors.len() >= MAX_ANCESTORS {
            wrong.bad.add(format!("the thread has more than {MAX_ANCESTORS} ancestors"));
            break;
        }
        let Some((ancestor, source)) = examine(verifier, &options, beginning, meter, &mut wrong) else { break };
        meter = source.meter;
        runs.extend(tied_runs::hold(verifier, &options, &source, &mut wrong));
        lineage.ancestors.push(ancestor);
        lineage.sources.push(source);
    }
    lineage.conclude(wrong, runs.len(), verifier.shallow);
    lineage
}

impl Lineage {
    fn conclude(&mut self, wrong: Flaws, runs: usize, shallow: bool) {
        let Flaws { mut bad, distrusted, mut unknown } = wrong;
        let fails = bad.is_contradicted() || (!shallow && bad.first().is_some());
        self.distrust = !fails && distrusted.first().is_some();
        bad.extend(&distrusted);
        let threads = self.ancestors.len();
        let mut parts = Vec::new();
        if threads > 0 {
            parts.push(format!("goes back to {}", counted(threads, "thread", "threads")));
        }
        if runs > 0 {
            parts.push(format!("tied to {}", counted(runs, "run", "runs")));
        }
        if self.ancestors.iter().any(|ancestor| ancestor.accepted_unknown) {
            parts.push("an unknown key was accepted on the way".to_owned());
        }
        unknown.sort();
        unknown.dedup();
        parts.extend(unknown.iter().map(|key| format!("key {key} not known to you")));
        self.verdict = bad.verdict(shallow, || parts.join(", "));
        if self.verdict.state == State::Ok && parts.is_empty() {
            self.verdict = Verdict::not_applicable("began by itself");
        } else if self.verdict.state == State::Ok && !unknown.is_empty() {
            self.verdict.state = State::NotApplicable;
        }
    }
}

/// Verifies an ancestor, and compares it with the first entry of its descendant.
///
/// The chains of all ancestors are in memory together, so `meter` limits their total size.
fn examine(
    verifier: &ThreadVerifier<'_>,
    options: &Options,
    (first, from): (&ThreadCheckpointed, &SourceCheckpoint),
    meter: Meter,
    wrong: &mut Flaws,
) -> Option<(Ancestor, ThreadChain)> {
    let offer = if let Some(Origin::Adopted(offer)) = &first.origin { Some(offer) } else { None };
    let source = read(verifier.store, from, meter, &mut wrong.bad)?;
    let label = format!("the source {from}");
    match source.trail.latest() {
        Some(latest) if latest.id == from.checkpoint && latest.commit == from.commit => {
            if *latest.content() != first.content {
                wrong.bad.add(format!("{label} holds something else"));
            }
        }
        _ => wrong.bad.add(format!("commit {} is not {label}", from.commit)),
    }
    let judged = signatures(&source, options, &format!("{label}: "));
    wrong.bad.extend(&judged.bad);
    wrong.distrusted.extend(&judged.distrusted);
    let signer = judged.signers.into_iter().next();
    if let (Some(offer), Some(signer)) = (offer, &signer)
        && offer.signer != signer.fingerprint
    {
        let key = &signer.fingerprint;
        wrong.bad.add(format!("{label} is signed by {key}, which is not the key that offered it"));
    }
    // No log lies beside an ancestor; only logs of its key count.
    let position = Position { thread: &from.thread, reference: "", place: "" };
    let anchored = logs::row(verifier, &source, position);
    if anchored.state == State::Failed {
        wrong.bad.add(format!("{label}: {}", anchored.detail));
    }
    let signer = signer.unwrap_or_else(|| SignerSeen::unknown(String::new()));
    if !signer.trusted && judged.distrusted.first().is_none() && !signer.fingerprint.is_empty() {
        wrong.unknown.push(signer.fingerprint.clone());
    }
    let ancestor = Ancestor {
        source: from.clone(),
        adopted: offer.is_some(),
        signer,
        accepted_unknown: offer.is_some_and(|offer| offer.accepted_unknown),
    };
    Some((ancestor, source))
}

/// Reads an ancestor up to the source checkpoint; returns `None` after recording a fault.
fn read(store: &Store, from: &SourceCheckpoint, meter: Meter, bad: &mut Findings) -> Option<ThreadChain> {
    let source = ThreadChain::read_after(store, &from.thread, from.commit, meter);
    let Some(first) = source.findings.first() else { return Some(source) };
    let finding = format!("the source {from}: {first}");
    if source.findings.is_contradicted() {
        bad.add(finding);
    } else {
        bad.missing(finding);
    }
    None
}

/// Returns the first checkpoint of a thread, and the one of another thread that it came from.
fn beginning(chain: &ThreadChain) -> Option<(&ThreadCheckpointed, &SourceCheckpoint)> {
    let Event::ThreadCheckpointed(first) = &chain.links.first()?.entry.event else { return None };
    Some((first, first.origin.as_ref()?.source()?))
}
