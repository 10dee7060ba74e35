//! Missing runs and threads of ours that logs or anchors name.

use std::collections::BTreeMap;

use crate::git::refs;
use crate::git::store::Store;
use crate::model::causes::in_words;
use crate::model::format;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, Place};
use crate::run::query::Target;
use crate::run::query::target::{self, own_runs};
use crate::verify::Logs;

use super::{Anchor, Holdings, Means};

/// The runs that local logs and anchors name as ours.
pub struct KnownRuns {
    /// All runs of this repository, and fetched copies of missing ones.
    pub targets: Vec<Target>,
    /// The missing runs, and the anchors that could not list theirs.
    pub missed: Vec<Missed>,
}

/// The places that know which runs and threads a key has.
#[derive(Clone, Copy)]
pub struct Holders<'a> {
    /// This repository.
    pub store: &'a Store,
    /// The key, if there is one.
    pub key: Option<&'a str>,
    /// The anchors.
    pub anchors: &'a [Anchor],
    /// The means to reach them.
    pub means: &'a Means,
}

/// Finds every run of this repository, including unreadable ones, and every run that its logs, the
/// logs of its key or an anchor name.
pub fn look_up(holders: &Holders<'_>, logs: &Logs, unreadable: &[Target]) -> Result<KnownRuns, target::Error> {
    let Holders { store, key, .. } = *holders;
    let at_anchors = AtAnchors::ask(holders);
    let mut missed: Vec<Missed> = logs.complaints(key).into_iter().map(Missed::Log).collect();
    let mut found: BTreeMap<RunId, String> =
        logs.recorded_runs(key).into_iter().map(|(run, log)| (run, format!("the log {log}"))).collect();
    missed.extend(at_anchors.missed);
    for (run, holder) in at_anchors.runs {
        found.entry(run).or_insert(holder);
    }
    let (mut own, were_here) = (own_runs(store)?, logs.recorded_runs(None));
    // An unreadable ref exists, and fails by itself.
    own.extend(unreadable.iter().filter(|target| target.is_own()).map(|target| target.run.clone()));
    found.retain(|run, _| !own.contains(run));
    let mut targets: Vec<Target> = own.into_iter().map(Target::own).collect();
    let fetched = refs::list_with_archived(store, format::FETCHED_REFS)?;
    for (run, holder) in found {
        // Runs in our own logs were here; for others, a fetched copy is enough.
        let place = Place::of_run(&run);
        let copies = fetched.iter().filter(|(name, _)| place.is_fetched_at(name) && !were_here.contains_key(&run));
        let before = targets.len();
        if let Err(error @ refs::Error::Archive(_)) = refs::read(store, &format::run_ref(&run)) {
            missed.push(Missed::Archived { run, why: in_words(&error) });
            continue;
        }
        targets.extend(copies.map(|(name, _)| Target { run: run.clone(), reference: name.clone() }));
        if targets.len() == before {
            let reference = format::run_ref(&run);
            missed.push(Missed::Gone { reference, holder, kind: Kind::Run });
        }
    }
    missed.extend(lost_threads(store, logs, at_anchors.threads)?);
    Ok(KnownRuns { targets, missed })
}

/// The runs and threads that anchors have for a key, each with its first anchor.
struct AtAnchors {
    runs: BTreeMap<RunId, String>,
    threads: BTreeMap<ThreadId, String>,
    /// The anchors that could not list everything.
    missed: Vec<Missed>,
}

impl AtAnchors {
    /// Asks every anchor for the runs and threads of a key, if there is one.
    fn ask(holders: &Holders<'_>) -> Self {
        let Holders { key, anchors, means, .. } = *holders;
        let mut found = Self { runs: BTreeMap::new(), threads: BTreeMap::new(), missed: Vec::new() };
        for (anchor, own_key) in anchors.iter().filter_map(|anchor| Some((anchor, key?))) {
            let name = &anchor.name;
            match anchor.holdings(means, own_key) {
                Ok(Holdings { runs, threads, complaints }) => {
                    let broken = complaints.into_iter();
                    found.missed.extend(broken.map(|why| Missed::Log(format!("{name}: {why}"))));
                    let holder = || format!("the anchor {name}");
                    runs.into_iter().for_each(|run| _ = found.runs.entry(run).or_insert_with(holder));
                    threads.into_iter().for_each(|thread| _ = found.threads.entry(thread).or_insert_with(holder));
                }
                Err(why) => found.missed.push(Missed::Silent { anchor: name.clone(), why }),
            }
        }
        found
    }
}

/// Returns the missing threads of a key that anchors have, and the anchors that could not be asked.
pub fn look_up_threads(holders: &Holders<'_>, logs: &Logs) -> Result<Vec<Missed>, refs::Error> {
    let at_anchors = AtAnchors::ask(holders);
    let mut missed = at_anchors.missed;
    missed.extend(lost_threads(holders.store, logs, at_anchors.threads)?);
    Ok(missed)
}

/// Returns the missing threads among these, each with its anchor.
///
/// For a thread that our own logs do not name, a fetched copy is enough.
fn lost_threads(store: &Store, logs: &Logs, holders: BTreeMap<ThreadId, String>) -> Result<Vec<Missed>, refs::Error> {
    let were_here = logs.recorded_places(format::REFS);
    let mut lost = Vec::new();
    for (thread, holder) in holders {
        let (place, reference) = (Place::of_thread(&thread), format::thread_ref(&thread));
        // An unreadable ref exists, and fails by itself.
        let is_here = !matches!(refs::read(store, &reference), Ok(None));
        if is_here || (!were_here.contains_key(&place) && !refs::fetched_at(store, &place)?.is_empty()) {
            continue;
        }
        lost.push(Missed::Gone { reference, holder, kind: Kind::Thread });
    }
    Ok(lost)
}

errors! {
    /// Something missing, or an anchor that could not be asked.
    #[derive(Debug, thiserror::Error)] pub enum Missed = "vanished" 3;
    Log(String) "broken-log" 3: "{0}";
    Silent { anchor: String, why: String } "anchor-missing" 3: "the anchor {anchor} does not say what it holds: {why}";
    Deleted(String): "{0}";
    Archived { run: RunId, why: String } "archive" 3: "the run {:?} is archived: {why}" [run.as_str()];
    Gone { reference: String, holder: String, kind: Kind }:
        "the ref {reference} is gone, but {holder} holds the {}" [.kind.word()];
}
