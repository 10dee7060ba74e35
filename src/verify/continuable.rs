//! Decides whether a run may be continued, and collects the state that appending needs.

use crate::git::store::Store;
use crate::ledger::merkle::Frontier;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::RunId;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::ahead::check_dates;
use super::findings::Verdict;
use super::objects::Objects;
use super::reader::Link;
use super::report::Verdicts;
use super::run_chain::RunChain;
use super::signature::Signed;
use super::{
    AtHand, Case, Chain, Error, Evidence, Logs, Mark, Now, Options, Report, Revoked, State, Verified, anchor, chain,
    check_incoming,
};

/// An open run that our key may append to. If [`Verified`], it was verified as far as it goes.
///
/// It describes the commit that it names. Appending is a compare-and-swap against that commit.
#[derive(Clone, Debug)]
pub struct Continuable {
    /// The run.
    pub run: RunId,
    /// The ref of the chain.
    pub reference: String,
    /// The leaf hash of entry 0.
    pub first: Digest,
    /// The commit of the last entry.
    pub commit: Oid,
    /// The tree of that commit.
    pub tree: Oid,
    /// The leaf hash of the last entry.
    pub last: Digest,
    /// The time of the last entry.
    pub at: Moment,
    /// The Merkle tree over the entries.
    pub frontier: Frontier,
    /// The state that the entries give.
    pub state: RunState,
    /// The number of entries that were verified in full. The others were verified before.
    pub examined: usize,
}

impl Continuable {
    /// Returns the number of entries, which is the number of the next one.
    pub fn entries(&self) -> u64 {
        self.frontier.len()
    }
}

/// The keys that may have begun a run that is to be continued.
#[derive(Clone, Copy, Debug)]
pub enum Begun<'a> {
    /// Our key, or one that the options trust. Entry 0 is its signer's claim, and a stranger may
    /// name our key in it.
    ByKnown(Option<&'a Options>),
    /// Any key. Nothing of the run may be executed.
    ByAnyone,
}

/// The process that is to append to a run.
#[derive(Clone, Copy, Debug)]
pub struct Appender<'a> {
    /// The fingerprint of its key.
    pub key: &'a str,
    /// The keys that may have begun the run.
    pub begun: Begun<'a>,
    /// The commit up to which the run was verified before.
    pub mark: Option<&'a Mark>,
    /// The local clock, which judges the dates of new entries of other keys.
    pub now: Option<Now>,
}

/// Verifies the chain, signatures, plan, handoffs and manifests of an open run.
pub fn continuable(
    store: &Store,
    run: &RunId,
    reference: &str,
    own_key: &str,
) -> Result<Verified<Continuable>, Refusal> {
    examine(store, run, reference, Appender { key: own_key, begun: Begun::ByKnown(None), mark: None, now: None })
}

/// Verifies like [`continuable`], but in full only the entries after the commit of a mark.
///
/// Earlier entries are read, hashed, ordered and replayed as well. Their signatures and tree
/// changes were checked when the mark was made. If anything is wrong, the whole run is verified.
pub fn continuable_on(
    store: &Store,
    run: &RunId,
    reference: &str,
    appender: Appender<'_>,
) -> Result<Verified<Continuable>, Refusal> {
    let mark = appender.mark.filter(|mark| mark.key == appender.key);
    match examine(store, run, reference, Appender { mark, ..appender }) {
        Err(Refusal::Broken(_)) if mark.is_some() => {
            examine(store, run, reference, Appender { mark: None, ..appender })
        }
        other => other,
    }
}

fn examine(
    store: &Store,
    run: &RunId,
    reference: &str,
    Appender { key: own_key, begun, mark, now }: Appender<'_>,
) -> Result<Verified<Continuable>, Refusal> {
    let options = Options { own_key: Some(own_key.to_owned()), ..Options::default() };
    let case = Case::open_on(store, run, reference, &options, mark)?;
    let evidence = Evidence::gather(&case, None);
    let chain = chain::row(&case);
    let Evidence { signature, replay, manifest, .. } = &evidence;
    let checked = [&chain, &signature.verdict, &replay.verdict, &replay.handoff, manifest];
    let broken = checked.iter().any(|verdict| verdict.state == State::Failed || verdict.incomplete);
    if broken {
        return Err(Refusal::Broken(Box::new(report(&case, evidence, chain))));
    }
    let foreign = stranger(&case, own_key, begun)?.map(|key| Refusal::Foreign { run: run.clone(), key });
    if case.seal().is_some() {
        return Err(foreign.unwrap_or_else(|| Refusal::Sealed(run.clone())));
    }
    let links = &case.chain.links;
    let (Some(_), Some(first), Some(last)) = (evidence.replay.state(), links.first(), links.last()) else {
        return Err(Refusal::Broken(Box::new(report(&case, evidence, chain))));
    };
    let state = evidence.replay.into_state().expect("it was just found");
    if !state.keys.knows(own_key) {
        return Err(Refusal::NotAWriter { run: run.clone(), key: own_key.to_owned() });
    }
    if let Some(foreign) = foreign {
        return Err(foreign);
    }
    if let Some(now) = now {
        check_dates(links, Some(own_key), now).map_err(|why| Refusal::Ahead { run: run.clone(), why })?;
    }
    let mut frontier = Frontier::default();
    case.chain.links.iter().for_each(|link| frontier.push(link.hash));
    Ok(Verified::new(Continuable {
        run: run.clone(),
        reference: reference.to_owned(),
        first: first.hash,
        commit: last.commit,
        tree: last.tree,
        last: last.hash,
        at: last.entry.at,
        frontier,
        state,
        examined: case.chain.links.iter().filter(|link| !link.verified_before).count(),
    }))
}

/// Checks that a chain may be stored as a run of this repository that drivers and people continue,
/// like [`check_incoming`], that it follows its plan, that no entry is dated ahead of the local
/// clock, and that no revoked key signed one; returns the first fault.
///
/// Entries up to `known`, a head that passed before, are only read and replayed.
pub fn check_continued(
    store: &Store,
    run: &RunId,
    known: Option<Oid>,
    tip: Oid,
    now: Now,
    revoked: &Revoked,
) -> Result<(), String> {
    check_incoming(store, Chain::Run(run), known, tip)?;
    // No key is asked for: only entries before the mark are not checked again.
    let mark = known.map(|commit| Mark { commit, key: String::new() });
    let (reference, options) = (format::run_ref(run), Options::default());
    let case = Case::at(store, run, &reference, &options, RunChain::read_on(store, tip, mark.as_ref()));
    let evidence = Evidence::gather(&case, None);
    let rows = [chain::row(&case), evidence.replay.verdict, evidence.replay.handoff, evidence.manifest];
    rows.into_iter().find(|row| row.state == State::Failed).map_or(Ok(()), |row| Err(row.detail))?;
    check_dates(&case.chain.links, None, now)?;
    for link in case.chain.links.iter().filter(|link| !link.verified_before) {
        if let Some(key) = link.signer.as_deref().ok().filter(|key| revoked.contains_key(*key)) {
            return Err(format!("entry {} of the key {key}: the key is revoked here", link.entry.seq));
        }
    }
    Ok(())
}

/// Returns the key that began the run, if it is not allowed to. The signature is checked even if a
/// mark covers it.
fn stranger(case: &Case<'_>, own_key: &str, begun: Begun<'_>) -> Result<Option<String>, Refusal> {
    let Begun::ByKnown(trust) = begun else { return Ok(None) };
    let Some(first) = case.chain.links.first() else { return Ok(None) };
    let read = Link::read(&Objects::new(case.store), first.commit);
    let read = read.map_err(unread(case.run.clone()))?;
    let key = Signed::from_link(&read).key().map_err(unread(case.run.clone()))?;
    let known = trust.is_some_and(|trust| trust.trusts(key, first.entry.at));
    Ok((key != own_key && !known).then(|| key.to_owned()))
}

fn unread(run: RunId) -> impl Fn(String) -> Refusal {
    move |why: String| Refusal::Unread { run: run.clone(), why }
}

/// Returns a report without the rows `root`, `anchor` and `content`, which do not matter for
/// appending.
fn report(case: &Case<'_>, evidence: Evidence, chain: Verdict) -> Report {
    let anchor = anchor::row(case, &AtHand::logs(&Logs::default()));
    let verdicts = evidence.without_anchor(case, chain);
    let claims = Report { anchors: anchor.anchored, times: anchor.times, ..verdicts.claims };
    Verdicts { claims, ..verdicts }.report()
}

errors! {
    /// A reason why a run must not be continued.
    #[derive(Debug, thiserror::Error)] pub enum Refusal = "not-continuable";
    Broken(Box<Report>): "run {} does not verify: {}" [.0.run, .0.first_finding()];
    Sealed(RunId): "run {0} is sealed";
    Foreign { run: RunId, key: String }: "run {run} was begun with the key {key}, which is not yours";
    NotAWriter { run: RunId, key: String }: "the key {key} is not among the writers of run {run}";
    Ahead { run: RunId, why: String }: "cannot continue run {run}: {why}";
    Unread { run: RunId, why: String }: "cannot read entry 0 of run {run}: {why}";
    #[from "not-continuable"] Verify(Error);
}
