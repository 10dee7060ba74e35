//! Whether a chain may be continued, and what appending to it needs to know.

use crate::git::store::Store;
use crate::ledger::merkle::Frontier;
use crate::model::digest::{Digest, Oid};
use crate::model::name::RunId;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::findings::Verdict;
use super::report::Verdicts;
use super::rows::Rows;
use super::{AtHand, Case, Error, Evidence, Logs, Mark, Options, Proven, Report, State, anchor, chain};

/// An unsealed run that our key may append to; [`Proven`], it verifies as far as it goes.
///
/// That holds for the commit it names; appending is a compare-and-swap against exactly that.
#[derive(Clone, Debug)]
pub struct Continuable {
    /// The run.
    pub run: RunId,
    /// The ref that holds the chain.
    pub reference: String,
    /// The tree of entry 0.
    pub first_tree: Oid,
    /// The leaf hash of entry 0.
    pub first: Digest,
    /// The commit of the last entry.
    pub commit: Oid,
    /// The tree of that commit.
    pub tree: Oid,
    /// The leaf hash of the last entry.
    pub last: Digest,
    /// When the last entry was made.
    pub at: Moment,
    /// The leaf hashes so far, folded.
    pub frontier: Frontier,
    /// The state that the entries give.
    pub state: RunState,
    /// How many entries were examined in full; for the others a mark vouched.
    pub examined: usize,
}

impl Continuable {
    /// Returns how many entries there are; the next one has this number.
    pub fn entries(&self) -> u64 {
        self.frontier.len()
    }
}

/// Verifies everything of an open run that can be verified: chain, signatures, plan, handoffs and manifests.
pub fn continuable(store: &Store, run: &RunId, reference: &str, own_key: &str) -> Result<Proven<Continuable>, Refusal> {
    examine(store, run, reference, own_key, None)
}

/// Verifies like [`continuable`] what came after the commit that a mark names, if the run still goes on from it.
///
/// Every entry before it is read, hashed and put in order all the same, and tells its part of the story; its signature and what
/// it did to the tree were seen to be right when the mark was made. Whatever is found wrong, the run is verified as a whole.
pub fn continuable_on(
    store: &Store,
    run: &RunId,
    reference: &str,
    own_key: &str,
    mark: Option<&Mark>,
) -> Result<Proven<Continuable>, Refusal> {
    let mark = mark.filter(|mark| mark.key == own_key);
    match examine(store, run, reference, own_key, mark) {
        Err(Refusal::Broken(_)) if mark.is_some() => continuable(store, run, reference, own_key),
        other => other,
    }
}

fn examine(
    store: &Store,
    run: &RunId,
    reference: &str,
    own_key: &str,
    mark: Option<&Mark>,
) -> Result<Proven<Continuable>, Refusal> {
    let options = Options { own_key: Some(own_key.to_owned()), ..Options::default() };
    let case = Case::open_on(store, run, reference, &options, mark)?;
    let evidence = Evidence::gather(&case, None);
    let chain = chain::row(&case);
    let checked = [&chain, &evidence.signature, &evidence.plan, &evidence.handoff, &evidence.manifest];
    let broken = checked.iter().any(|verdict| verdict.state == State::Failed || verdict.incomplete);
    if broken {
        return Err(Refusal::Broken(Box::new(report(&case, evidence, chain))));
    }
    // Entry 0 is its signer's own word: a stranger may name our key in it, but cannot sign with it.
    let stranger = evidence.signers.iter().find(|signer| signer.fingerprint != own_key);
    let foreign = stranger.map(|signer| Refusal::Foreign { run: run.clone(), key: signer.fingerprint.clone() });
    if case.seal().is_some() {
        return Err(foreign.unwrap_or_else(|| Refusal::Sealed(run.clone())));
    }
    let writers = case.chain.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    if !writers.iter().any(|writer| writer == own_key) {
        return Err(Refusal::NotAWriter { run: run.clone(), key: own_key.to_owned() });
    }
    if let Some(foreign) = foreign {
        return Err(foreign);
    }
    let (Some(state), Some(first), Some(last)) = (evidence.state, case.chain.links.first(), case.chain.links.last())
    else {
        return Err(Refusal::Broken(Box::new(report(&case, Evidence { state: None, ..evidence }, chain))));
    };
    let mut frontier = Frontier::default();
    case.chain.links.iter().for_each(|link| frontier.push(link.hash));
    Ok(Proven::new(Continuable {
        run: run.clone(),
        reference: reference.to_owned(),
        first_tree: first.tree,
        first: first.hash,
        commit: last.commit,
        tree: last.tree,
        last: last.hash,
        at: last.entry.at,
        frontier,
        state,
        examined: case.chain.links.iter().filter(|link| !link.vouched).count(),
    }))
}

/// Reports without the rows that say nothing about whether a chain may grow: that it is not sealed is no fault here.
fn report(case: &Case<'_>, evidence: Evidence, chain: Verdict) -> Report {
    let anchor = anchor::row(case, &AtHand::logs(&Logs::default()));
    let outcome = evidence.outcome();
    let Evidence { signature, handoff, plan, manifest, .. } = evidence;
    let not_asked = Rows::default().map(|_, &()| Verdict::not_applicable("not asked for"));
    let rows = Rows { chain, signature, handoff, plan, manifest, ..not_asked };
    let judged = Verdicts {
        rows,
        signers: evidence.signers,
        missing_anchor: false,
        anchored: anchor.anchored,
        times: anchor.times,
        sandbox: evidence.sandbox,
        outcome,
    };
    judged.report(super::report::Facts::of(case), evidence.distrust)
}

/// Why a chain must not be continued.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It does not verify as far as it goes.
    #[error("run {} does not verify: {}", .0.run, .0.first_finding())]
    Broken(Box<Report>),
    /// It is sealed, by our own key: nothing follows a seal.
    #[error("run {0} is sealed")]
    Sealed(RunId),
    /// It is sound, sealed or not, but somebody else recorded it.
    #[error("run {run} was recorded with the key {key}, which is not yours")]
    Foreign {
        /// The run.
        run: RunId,
        /// The first other key's fingerprint.
        key: String,
    },
    /// Entry 0 does not name our key.
    #[error("the key {key} is not among the writers of run {run}")]
    NotAWriter {
        /// The run.
        run: RunId,
        /// Our key's fingerprint.
        key: String,
    },
    /// The run could not be looked at.
    #[error(transparent)]
    Verify(#[from] Error),
}
