//! What our logs hold and is not here any more: refs of runs and threads that are gone, and threads that were set back.

use crate::git::refs;
use crate::ledger::chain;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::hints;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;
use crate::verify::Logs;

use super::{Error, Finding, Patient};

pub(super) fn examine(patient: &Patient) -> Result<Vec<Finding>, Error> {
    let logs = Logs::read(&patient.store)?;
    let mut findings = Vec::new();
    for (run, log) in logs.held(None) {
        findings.extend(of_run(patient, &run, &log, logs.own_seal(&run))?);
    }
    for (thread, (entries, log)) in logs.own_threads() {
        findings.extend(of_thread(patient, &thread, entries, &log)?);
    }
    Ok(findings)
}

fn of_run(patient: &Patient, run: &RunId, log: &str, seal: Option<Oid>) -> Result<Option<Finding>, Error> {
    let (store, name) = (&patient.store, format::run_ref(run));
    if refs::read(store, &name)?.is_some() {
        return Ok(None);
    }
    // The log says where a sealed one ended, and that stays here until git prunes it.
    let found = match seal.filter(|commit| store.contains(*commit)) {
        None => refs::fetched_at(store, &Place::of_run(run))?.into_iter().map(|(_, tip)| tip).next(),
        seal => seal,
    };
    let message = format!("the ref of the run {:?} is gone, but {log} holds the run", run.as_str());
    Ok(Some(back("run-gone", message, &name, found)))
}

fn of_thread(patient: &Patient, thread: &ThreadId, entries: u64, log: &str) -> Result<Option<Finding>, Error> {
    let (store, name) = (&patient.store, format::thread_ref(thread));
    // None where there is no ref: a thread has at least one entry.
    let has = chain::tip(store, &name)?.entries;
    if has >= entries {
        return Ok(None);
    }
    let (code, what) = match has {
        0 => ("thread-gone", format!("the ref of the thread {:?} is gone, but", thread.as_str())),
        has => ("thread-rewound", format!("the thread {:?} has {has} of its entries:", thread.as_str())),
    };
    let whole = |name: &str| chain::tip(store, name).is_ok_and(|head| head.entries >= entries);
    let found = refs::fetched_at(store, &Place::of_thread(thread))?.into_iter().find(|(name, _)| whole(name));
    let message = format!("{what} {log} holds {entries} of it");
    Ok(Some(back(code, message, &name, found.map(|(_, tip)| tip))))
}

/// Says what is gone, and how it comes back: from a commit that is here, else from those that no ref reaches any more.
fn back(code: &'static str, message: String, name: &str, found: Option<Oid>) -> Finding {
    let hint = found.map_or_else(hints::find_lost, |commit| hints::restore_ref(name, commit));
    Finding::problem(code, message).hint(hint)
}
