//! The runs that checkpoints are tied to: each tie names an entry of a valid run.
//!
//! A tie names a commit, and any process can create commits. So the run is verified from that
//! commit back, except for its seal and completeness. If this repository has a run or a log of that
//! name, the tied run must be the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::entry::LogRecorded;
use crate::model::format;
use crate::model::name::RunId;

use super::lineage::Flaws;
use super::{ThreadChain, ThreadVerifier};
use crate::verify::findings::Findings;
use crate::verify::reader::strangers;
use crate::verify::run_chain::RunChain;
use crate::verify::{Case, Evidence, Logs, Options, State, chain, resolve};

/// Verifies every tie of a thread; returns the tied runs.
pub(super) fn hold(
    verifier: &ThreadVerifier<'_>,
    options: &Options,
    chain: &ThreadChain,
    wrong: &mut Flaws,
) -> BTreeSet<RunId> {
    let mut ties: BTreeMap<&RunId, Vec<Oid>> = BTreeMap::new();
    for link in &chain.links {
        if let Some(tie) = link.entry.event.tied_run() {
            ties.entry(&tie.id).or_default().push(tie.commit);
        }
    }
    for (run, commits) in &ties {
        let owner = chain.links.first().and_then(|link| link.signer.as_deref().ok());
        judge(verifier, options, &Ties { run, commits, owner }, wrong);
    }
    ties.into_keys().cloned().collect()
}

struct Ties<'a> {
    run: &'a RunId,
    /// The commits of the entries, in the order of the ties.
    commits: &'a [Oid],
    /// The key of the thread.
    owner: Option<&'a str>,
}

fn judge(
    verifier: &ThreadVerifier<'_>,
    options: &Options,
    &Ties { run, commits, owner }: &Ties<'_>,
    wrong: &mut Flaws,
) {
    let mut began = BTreeSet::new();
    let reference = format::run_ref(run);
    let mut covered = BTreeSet::new();
    // The last tie usually covers the earlier ones.
    for commit in commits.iter().rev() {
        if covered.contains(commit) {
            continue;
        }
        let case = Case::at(verifier.store, run, &reference, options, RunChain::read(verifier.store, *commit));
        covered.insert(*commit);
        covered.extend(case.chain.links.iter().map(|link| link.commit));
        began.extend(began_by(&case).map(str::to_owned));
        examine(verifier, &case, owner, wrong);
    }
    in_ours(verifier, options, &Ties { run, commits, owner }, &began, &mut wrong.bad);
}

/// Verifies a run up to the tied entry.
fn examine(verifier: &ThreadVerifier<'_>, case: &Case<'_>, owner: Option<&str>, wrong: &mut Flaws) {
    let label = format!("run {}", case.run);
    let Evidence { signature, replay, manifest, .. } = Evidence::gather(case, None);
    let chain = chain::row(case);
    if chain.incomplete {
        wrong.bad.missing(format!("{label}: {}", chain.detail));
    }
    // A partial clone may lack the objects behind the entries. That says nothing about a tie.
    for verdict in [chain, replay.handoff, replay.verdict, manifest] {
        if verdict.state == State::Failed {
            wrong.bad.add(format!("{label}: {}", verdict.detail));
        }
    }
    if signature.verdict.state == State::Failed {
        let finding = format!("{label}: {}", signature.verdict.detail);
        if signature.is_distrust() { wrong.distrusted.add(finding) } else { wrong.bad.add(finding) }
    } else {
        let unknown = signature.signers.iter().filter(|signer| !signer.trusted);
        wrong.unknown.extend(unknown.map(|signer| signer.fingerprint.clone()));
    }
    let submitted = case.chain.submitted();
    for log in &verifier.logs.logs {
        let by = Some(log.fingerprint.as_str());
        let counts = log.lies_beside(case.reference)
            || by == owner
            || submitted.is_some_and(|e| e.roles.contains_key(&log.fingerprint));
        if counts && log.runs.get(case.run).is_some_and(|recorded| contradicts(recorded, case)) {
            wrong.bad.add(format!("{label}: {} holds another run of that name", log.name));
        }
    }
}

fn began_by<'c>(case: &'c Case<'_>) -> Option<&'c str> {
    case.chain.links.first()?.signer.as_deref().ok()
}

/// Returns true if a log names another beginning of the run, or another end.
///
/// The run may not have ended yet. A log of another key than the one that began the run names
/// another run with its id, which is no contradiction.
fn contradicts(recorded: &LogRecorded, case: &Case<'_>) -> bool {
    let hash_at = |at: usize| case.chain.links.get(at).map(|link| link.hash);
    if hash_at(0) != Some(recorded.first) {
        return began_by(case).is_none_or(|signer| signer == recorded.log);
    }
    let at = usize::try_from(recorded.last_seq).unwrap_or(usize::MAX);
    let is_other_end = recorded.root.is_some() && case.seal().is_some_and(|seal| seal != at);
    is_other_end || hash_at(at).is_some_and(|hash| hash != recorded.last)
}

/// Compares ties with this repository's own run of that name, if the same key began it.
fn in_ours(
    verifier: &ThreadVerifier<'_>,
    options: &Options,
    &Ties { run, commits, .. }: &Ties<'_>,
    began: &BTreeSet<String>,
    bad: &mut Findings,
) {
    let tip = match resolve(verifier.home, &format::run_ref(run)) {
        Ok(Ok(tip)) => tip,
        Ok(Err(why)) => return bad.add(format!("run {run}: {why}")),
        Err(_) => return,
    };
    match strangers(verifier.home, tip, commits) {
        Ok(strangers) if strangers.is_empty() => {}
        Ok(strangers) => {
            let reference = format::run_ref(run);
            let ours = Case::at(verifier.home, run, &reference, options, RunChain::read(verifier.home, tip));
            if began_by(&ours).is_some_and(|key| !began.contains(key)) && !began.is_empty() {
                return;
            }
            for commit in strangers {
                bad.add(format!("commit {commit} is no entry of this repository's run {run}"));
            }
        }
        Err(fault) => bad.fault(&format!("run {run}"), &fault),
    }
}

/// Returns the reason why a run cannot be tied to a thread.
pub fn tied_run(store: &Store, logs: &Logs, run: &RunId, commit: Oid, options: &Options) -> Result<(), String> {
    let verifier = ThreadVerifier::new(store, store, logs, options);
    let mut wrong = Flaws::default();
    judge(&verifier, options, &Ties { run, commits: &[commit], owner: options.own_key.as_deref() }, &mut wrong);
    let verdict = wrong.bad.verdict(verifier.shallow, String::new);
    if verdict.state == State::Failed { Err(verdict.detail) } else { Ok(()) }
}
