//! Whether a chain may be continued, and what appending to it needs to know.

use crate::git::store::Store;
use crate::ledger::merkle::Frontier;
use crate::model::digest::{Digest, Oid};
use crate::model::name::RunId;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::findings::Verdict;
use super::objects::Objects;
use super::reader::Link;
use super::report::Verdicts;
use super::rows::Rows;
use super::signature::Signed;
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

/// Who may have begun a run that is to be continued.
#[derive(Clone, Copy, Debug)]
pub enum Begun<'a> {
    /// Our key, or one that somebody trusts: what entry 0 says is its signer's own word, and a stranger may name our key in it.
    ByKnown(Option<&'a Options>),
    /// Whoever: nothing of the run is to be executed.
    ByAnyone,
}

/// Verifies everything of an open run of ours that can be verified: chain, signatures, plan, handoffs and manifests.
pub fn continuable(store: &Store, run: &RunId, reference: &str, own_key: &str) -> Result<Proven<Continuable>, Refusal> {
    examine(store, run, reference, (own_key, Begun::ByKnown(None)), None)
}

/// Verifies like [`continuable`] what came after the commit that a mark names, if the run still goes on from it.
///
/// Every entry before it is read, hashed and put in order all the same, and tells its part of the story; its signature and what
/// it did to the tree were seen to be right when the mark was made. Whatever is found wrong, the run is verified as a whole.
pub fn continuable_on(
    store: &Store,
    run: &RunId,
    reference: &str,
    (own_key, begun): (&str, Begun<'_>),
    mark: Option<&Mark>,
) -> Result<Proven<Continuable>, Refusal> {
    let mark = mark.filter(|mark| mark.key == own_key);
    match examine(store, run, reference, (own_key, begun), mark) {
        Err(Refusal::Broken(_)) if mark.is_some() => examine(store, run, reference, (own_key, begun), None),
        other => other,
    }
}

fn examine(
    store: &Store,
    run: &RunId,
    reference: &str,
    (own_key, begun): (&str, Begun<'_>),
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
    let foreign = stranger(&case, own_key, begun)?.map(|key| Refusal::Foreign { run: run.clone(), key });
    if case.seal().is_some() {
        return Err(foreign.unwrap_or_else(|| Refusal::Sealed(run.clone())));
    }
    let (Some(state), Some(first), Some(last)) = (evidence.state, case.chain.links.first(), case.chain.links.last())
    else {
        return Err(Refusal::Broken(Box::new(report(&case, Evidence { state: None, ..evidence }, chain))));
    };
    if !state.keys.knows(own_key) {
        return Err(Refusal::NotAWriter { run: run.clone(), key: own_key.to_owned() });
    }
    if let Some(foreign) = foreign {
        return Err(foreign);
    }
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

/// Returns the key that began the run, if it is not one that may have. What a mark vouches for is looked at all the same.
fn stranger(case: &Case<'_>, own_key: &str, begun: Begun<'_>) -> Result<Option<String>, Refusal> {
    let Begun::ByKnown(trust) = begun else { return Ok(None) };
    let Some(first) = case.chain.links.first() else { return Ok(None) };
    let read = Link::read(&Objects::new(case.store), first.commit);
    let unread = |why: String| Refusal::Unread { run: case.run.clone(), why };
    let read = read.map_err(unread)?;
    let key = Signed::of(&read).key().map_err(unread)?;
    let known = trust.is_some_and(|trust| trust.trusts(key, first.entry.at));
    Ok((key != own_key && !known).then(|| key.to_owned()))
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
        others: Vec::new(),
    };
    judged.report(super::facts::Facts::of(case), evidence.distrust)
}

/// Why a chain must not be continued.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Refusal {
    #[error("run {} does not verify: {}", .0.run, .0.first_finding())]
    Broken(Box<Report>),
    #[error("run {0} is sealed")]
    Sealed(RunId),
    #[error("run {run} was begun with the key {key}, which is not yours")]
    Foreign { run: RunId, key: String },
    #[error("the key {key} is not among the writers of run {run}")]
    NotAWriter { run: RunId, key: String },
    #[error("entry 0 of run {run} could not be read: {why}")]
    Unread { run: RunId, why: String },
    #[error(transparent)]
    Verify(#[from] Error),
}
