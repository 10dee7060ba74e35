//! Runs and threads that our logs name and that are gone or shortened, and what remotes no longer
//! show.

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::format::{self, REFS};
use crate::model::hints;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;
use crate::repository::remote_record::{self, Vanished};
use crate::verify::Logs;
use crate::verify::deleted;

use super::{Finding, Patient};

pub(super) fn examine(patient: &Patient<'_>) -> Result<Vec<Finding>, AnyError> {
    let logs = Logs::read(patient.store)?;
    let mut findings = Vec::new();
    for (run, log) in logs.recorded_runs(None) {
        findings.extend(of_run(patient, &logs, &run, &log)?);
    }
    for (thread, (entries, log)) in logs.own_threads() {
        findings.extend(of_thread(patient, &thread, entries, &log)?);
    }
    for found in remote_record::vanished_by_remote(patient.store, &logs) {
        match found {
            Ok(some) => findings.extend(of_remote(&some)),
            Err(remote_record::Error::Ref(error)) => return Err(error.into()),
            Err(error) => findings.push(unknown(&error)),
        }
    }
    Ok(findings)
}

/// Reports an unreadable record of a remote.
fn unknown(error: &remote_record::Error) -> Finding {
    let finding = Finding::problem("remote-record", in_words(error));
    match error.path() {
        Some(path) => finding.hint(hints::forget_seen(path.display())),
        None => finding,
    }
}

/// Reports what a remote lacks: each loss separately, and the number of those never seen there.
fn of_remote(all: &[Vanished]) -> Vec<Finding> {
    let (lost, unpushed): (Vec<_>, Vec<_>) = all.iter().partition(|vanished| vanished.was_shown);
    let mut findings: Vec<Finding> = lost.into_iter().map(vanished).collect();
    if let Some(first) = unpushed.first() {
        let text = remote_record::unpushed(&first.remote, unpushed.len());
        findings.push(Finding::note("vanished", text).hint(hints::ask_for_it()));
    }
    findings
}

/// Reports what a remote lacks. It is a problem only if the remote had it and there is no copy
/// here.
fn vanished(vanished: &Vanished) -> Finding {
    let finding = if vanished.is_missed() { Finding::problem } else { Finding::note };
    let hint = match &vanished.local_copy {
        Some(local_copy) if vanished.was_shown => {
            hints::hand_back(&vanished.remote, local_copy, vanished.place.below(REFS))
        }
        _ => hints::ask_for_it(),
    };
    finding("vanished", vanished.sentence()).hint(hint)
}

fn of_run(patient: &Patient<'_>, logs: &Logs, run: &RunId, log: &str) -> Result<Option<Finding>, AnyError> {
    let (store, name) = (patient.store, format::run_ref(run));
    let is_here = match refs::read(store, &name) {
        // An unreadable archive is a finding of its own.
        Err(refs::Error::Archive(_)) => true,
        other => other?.is_some(),
    };
    if is_here {
        return Ok(None);
    }
    if let Some(deleted) =
        deleted::recorded(store, run).filter(|deleted| deleted.is_proven(logs, run, &patient.options))
    {
        return Ok(Some(Finding::note("run-deleted", format!("{}; a log still names it", deleted.sentence(run)))));
    }
    // The log names the last entry of a sealed run, whose commit stays here until git prunes it.
    let found = match logs.own_seal(run).and_then(|seal| commit_of(store, seal)) {
        None => refs::fetched_at(store, &Place::of_run(run))?.into_iter().map(|(_, tip)| tip).next(),
        seal => seal,
    };
    let message = format!("the ref of the run {:?} is gone, but {log} holds the run", run.as_str());
    Ok(Some(back("run-gone", message, &name, found)))
}

/// Returns the commit of an entry, whether a ref keeps it or not.
fn commit_of(store: &Store, hash: Digest) -> Option<Oid> {
    let repository = store.local();
    repository.objects.iter().ok()?.flatten().map(Oid).find(|oid| {
        repository.find_header(oid.0).is_ok_and(|header| header.kind().is_commit())
            && chain::decode(store, *oid).is_ok_and(|entry| entry.hash == hash)
    })
}

fn of_thread(patient: &Patient<'_>, thread: &ThreadId, entries: u64, log: &str) -> Result<Option<Finding>, AnyError> {
    let (store, name) = (patient.store, format::thread_ref(thread));
    // A missing ref has no entries; an existing thread has at least one.
    let has = chain::tip(store, &name)?.entries;
    if has >= entries {
        return Ok(None);
    }
    let (code, what) = match has {
        0 => ("thread-gone", format!("the ref of the thread {:?} is gone, but", thread.as_str())),
        has => ("thread-rewound", format!("the thread {:?} has {has} of its entries:", thread.as_str())),
    };
    let found = refs::fetched_at(store, &Place::of_thread(thread))?
        .into_iter()
        .find(|(copy, _)| chain::tip(store, copy).is_ok_and(|head| head.entries >= entries));
    let message = format!("{what} {log} holds {entries} of it");
    Ok(Some(back(code, message, &name, found.map(|(_, tip)| tip))))
}

/// Reports a loss and how to recover it: from a commit that is still here, if any.
fn back(code: &'static str, message: String, name: &str, found: Option<Oid>) -> Finding {
    let hint = found.map_or_else(hints::find_lost, |commit| hints::restore_ref(name, commit));
    Finding::problem(code, message).hint(hint)
}
