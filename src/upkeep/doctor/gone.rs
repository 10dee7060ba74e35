//! What our logs hold and is not here any more: refs of runs and threads that are gone, and threads that were set back.

use crate::git::refs;
use crate::ledger::chain;
use crate::model::digest::Oid;
use crate::model::format::{self, FETCHED_REFS, REFS};
use crate::model::hints;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;
use crate::verify::{Kept, Logs};

use super::{Error, Finding, Patient};

pub(super) fn examine(patient: &Patient) -> Result<Vec<Finding>, Error> {
    let logs = Logs::read(&patient.store)?;
    let mut findings = Vec::new();
    for (run, held) in logs.own_runs() {
        findings.extend(of_run(patient, &run, &held)?);
    }
    for (thread, held) in logs.own_threads() {
        findings.extend(of_thread(patient, &thread, &held)?);
    }
    Ok(findings)
}

fn of_run(patient: &Patient, run: &RunId, held: &Kept) -> Result<Option<Finding>, Error> {
    let (store, name) = (&patient.store, format::run_ref(run));
    if refs::read(store, &name)?.is_some() {
        return Ok(None);
    }
    // The log says where a sealed one ended, and that stays here until git prunes it.
    let sealed = held.commit.filter(|commit| store.contains(*commit));
    let fetched = || Ok::<_, Error>(fetched(patient, &Place::of_run(run))?.into_iter().map(|(_, tip)| tip).next());
    let found = if sealed.is_some() { sealed } else { fetched()? };
    let message = format!("the ref of the run {:?} is gone, but {} holds the run", run.as_str(), held.log);
    Ok(Some(back("run-gone", message, &name, found)))
}

fn of_thread(patient: &Patient, thread: &ThreadId, held: &Kept) -> Result<Option<Finding>, Error> {
    let (store, name) = (&patient.store, format::thread_ref(thread));
    let entries = |name: &str| chain::tip(store, name).map(|head| head.entries);
    let (code, what) = match refs::read(store, &name)? {
        None => ("thread-gone", format!("the ref of the thread {:?} is gone, but", thread.as_str())),
        Some(_) => match entries(&name)? {
            has if has >= held.entries => return Ok(None),
            has => ("thread-rewound", format!("the thread {:?} has {has} of its entries:", thread.as_str())),
        },
    };
    let whole = |name: &str| entries(name).is_ok_and(|has| has >= held.entries);
    let found = fetched(patient, &Place::of_thread(thread))?.into_iter().find(|(name, _)| whole(name));
    let message = format!("{what} {} holds {} of it", held.log, held.entries);
    Ok(Some(back(code, message, &name, found.map(|(_, tip)| tip))))
}

/// Returns the copies of a run or thread that were fetched.
fn fetched(patient: &Patient, place: &Place) -> Result<Vec<(String, Oid)>, refs::Error> {
    let mut copies = refs::list(&patient.store, FETCHED_REFS)?;
    copies.retain(|(name, _)| place.is_fetched_at(name));
    Ok(copies)
}

/// Says what is gone, and how it comes back: from a commit that is here, else from those that no ref reaches any more.
fn back(code: &'static str, message: String, name: &str, found: Option<Oid>) -> Finding {
    debug_assert!(name.starts_with(REFS), "nobody else's ref is written");
    let hint = found.map_or_else(hints::find_lost, |commit| hints::restore_ref(name, commit));
    Finding::problem(code, message).hint(hint)
}
