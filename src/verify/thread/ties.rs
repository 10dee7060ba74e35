//! The runs that checkpoints are tied to: each tie is to an entry of a run that stands, back to its first entry.
//!
//! A tie is to a commit, and anybody can make commits. So the run is read from this commit back and held to what a run is held
//! to, seal and completeness aside; and where this repository has a run of that name, or a log of one, it is that one.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::entry::Event;
use crate::model::format;
use crate::model::name::RunId;

use super::lineage::Flaws;
use super::{Table, ThreadChain};
use crate::verify::findings::Findings;
use crate::verify::log::Said;
use crate::verify::reader::strangers;
use crate::verify::run_chain::RunChain;
use crate::verify::{Case, Evidence, Logs, Options, State, chain, resolve};

/// Holds every tie of a thread; returns the runs that it is tied to.
pub(super) fn hold(table: &Table<'_>, options: &Options, walked: &ThreadChain, wrong: &mut Flaws) -> BTreeSet<RunId> {
    let mut ties: BTreeMap<&RunId, Vec<Oid>> = BTreeMap::new();
    for link in &walked.links {
        if let Event::ThreadCheckpointed(e) = &link.entry.event
            && let Some(tie) = &e.run
        {
            ties.entry(&tie.id).or_default().push(tie.commit);
        }
    }
    for (run, commits) in &ties {
        let owner = walked.links.first().and_then(|link| link.signer.as_deref().ok());
        judge(table, options, (run, commits, owner), wrong);
    }
    ties.into_keys().cloned().collect()
}

/// Judges the ties to one run, in the order in which they were made, by the key of the thread.
fn judge(
    table: &Table<'_>,
    options: &Options,
    (run, commits, owner): (&RunId, &[Oid], Option<&str>),
    wrong: &mut Flaws,
) {
    let mut began = BTreeSet::new();
    let reference = format::run_ref(run);
    let mut held = BTreeSet::new();
    // The run goes on between ties: what leads to the last one mostly holds the others.
    for commit in commits.iter().rev() {
        if held.contains(commit) {
            continue;
        }
        let case = Case::at(table.store, run, &reference, options, RunChain::read(table.store, *commit));
        held.insert(*commit);
        held.extend(case.chain.links.iter().map(|link| link.commit));
        began.extend(began_by(&case).map(str::to_owned));
        examine(table, &case, owner, wrong);
    }
    in_ours(table, options, (run, commits, &began), &mut wrong.bad);
}

/// Holds a run, as far as the entry that is tied, to what a run is held to.
fn examine(table: &Table<'_>, case: &Case<'_>, owner: Option<&str>, wrong: &mut Flaws) {
    let whose = format!("run {}", case.run);
    let evidence = Evidence::gather(case, None);
    let chain = chain::row(case);
    if chain.incomplete {
        wrong.bad.missing(format!("{whose}: {}", chain.detail));
    }
    // A tie is to an entry: where a partial clone leaves out what the entries rest on, that says nothing of it.
    for verdict in [chain, evidence.handoff, evidence.plan, evidence.manifest] {
        if verdict.state == State::Failed {
            wrong.bad.add(format!("{whose}: {}", verdict.detail));
        }
    }
    if evidence.signature.state == State::Failed {
        let finding = format!("{whose}: {}", evidence.signature.detail);
        if evidence.distrust { wrong.distrusted.add(finding) } else { wrong.bad.add(finding) }
    } else {
        let unknown = evidence.signers.iter().filter(|signer| !signer.trusted);
        wrong.unknown.extend(unknown.map(|signer| signer.fingerprint.clone()));
    }
    let writers = case.chain.submitted().map(|e| e.writers.as_slice()).unwrap_or_default();
    for log in &table.logs.logs {
        let by = Some(log.fingerprint.as_str());
        let speaks = log.stands_by(case.reference) || by == owner || writers.contains(&log.fingerprint);
        if speaks && log.runs.get(case.run).is_some_and(|said| contradicts(said, &log.fingerprint, case)) {
            wrong.bad.add(format!("{whose}: {} holds another run of that name", log.name));
        }
    }
}

/// Returns the key that signed entry 0 of a run, if its signature is good.
fn began_by<'c>(case: &'c Case<'_>) -> Option<&'c str> {
    case.chain.links.first()?.signer.as_deref().ok()
}

/// Returns true if the log of a key speaks of another beginning, or of another end than a run has that may not have ended yet.
///
/// A log of another key than the one that began the run names another run with its id, which contradicts nothing.
fn contradicts(said: &Said, key: &str, case: &Case<'_>) -> bool {
    let hash_at = |at: usize| case.chain.links.get(at).map(|link| link.hash);
    let begins = said.first.is_none_or(|first| hash_at(0) == Some(first));
    if !begins && began_by(case).is_some_and(|signer| signer != key) {
        return false;
    }
    let ends = said.sealed.as_ref().is_none_or(|sealed| {
        let at = usize::try_from(sealed.entries).unwrap_or(usize::MAX);
        hash_at(at).is_none_or(|hash| hash == sealed.seal) && case.seal().is_none_or(|seal| seal == at)
    });
    !(begins && ends)
}

/// Holds ties against this repository's own run of that name, if it has one and the key of the tied run began it.
fn in_ours(
    table: &Table<'_>,
    options: &Options,
    (run, commits, began): (&RunId, &[Oid], &BTreeSet<String>),
    bad: &mut Findings,
) {
    let tip = match resolve(table.home, &format::run_ref(run)) {
        Ok(Ok(tip)) => tip,
        Ok(Err(why)) => return bad.add(format!("run {run}: {why}")),
        Err(_) => return,
    };
    match strangers(table.home, tip, commits) {
        Ok(strangers) if strangers.is_empty() => {}
        Ok(strangers) => {
            let reference = format::run_ref(run);
            let ours = Case::at(table.home, run, &reference, options, RunChain::read(table.home, tip));
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

/// Says why a run cannot be tied to a thread; nothing where it can.
pub fn tied_run(store: &Store, logs: &Logs, (run, commit): (&RunId, Oid), options: &Options) -> Result<(), String> {
    let table = Table::new(store, store, logs, options);
    let mut wrong = Flaws::default();
    judge(&table, options, (run, &[commit], options.own_key.as_deref()), &mut wrong);
    let verdict = wrong.bad.verdict(table.shallow, String::new);
    if verdict.state == State::Failed { Err(verdict.detail) } else { Ok(()) }
}
