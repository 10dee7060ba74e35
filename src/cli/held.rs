//! Runs that something else holds as ours, and that are not here.

use std::collections::BTreeMap;

use git_handoff::anchor::{Anchor, Means};
use git_handoff::git::refs;
use git_handoff::git::store::Store;
use git_handoff::model::format;
use git_handoff::model::name::RunId;
use git_handoff::model::place::Place;
use git_handoff::verify::Logs;

use super::failure::Failure;
use super::target::{Target, own_runs};

/// What becomes of the runs that are held as ours, by logs at hand and by anchors.
pub(super) struct Held {
    /// All runs of this repository, and what was fetched of those that are held and not here.
    pub(super) targets: Vec<Target>,
    /// What cannot be found at all, and who could not say what it holds.
    pub(super) missed: Vec<Failure>,
}

/// Looks up every run of this repository, and every one that its own logs, the logs of its key, or an anchor hold of its key.
pub(super) fn look_up(
    (store, key): (&Store, Option<&str>),
    logs: &Logs,
    (anchors, means): (&[Anchor], &Means),
) -> Result<Held, Failure> {
    let mut missed: Vec<Failure> = logs.complaints(key).into_iter().map(|why| checked("broken-log", why)).collect();
    let mut holders: BTreeMap<RunId, String> =
        logs.held(key).into_iter().map(|(run, log)| (run, format!("the log {log}"))).collect();
    for (anchor, key) in anchors.iter().filter_map(|anchor| Some((anchor, key?))) {
        let name = &anchor.name;
        match anchor.holdings(means, key) {
            Ok(holdings) => {
                let broken = holdings.complaints.into_iter();
                missed.extend(broken.map(|why| checked("broken-log", format!("{name}: {why}"))));
                for run in holdings.runs {
                    holders.entry(run).or_insert_with(|| format!("the anchor {name}"));
                }
            }
            Err(why) => {
                missed.push(checked("anchor-missing", format!("the anchor {name} does not say what it holds: {why}")));
            }
        }
    }
    let (own, were_here) = (own_runs(store)?, logs.held(None));
    holders.retain(|run, _| !own.contains(run));
    let mut targets: Vec<Target> = own.into_iter().map(own_target).collect();
    let fetched = refs::list(store, format::FETCHED_REFS)?;
    for (run, holder) in holders {
        // What our own logs hold was here; of anything else, what was fetched is what there is here.
        let place = Place::of_run(&run);
        let copies = fetched.iter().filter(|(name, _)| place.is_fetched_at(name) && !were_here.contains_key(&run));
        let before = targets.len();
        targets.extend(copies.map(|(name, _)| Target { run: run.clone(), reference: name.clone() }));
        if targets.len() == before {
            let reference = format::run_ref(&run);
            missed.push(checked("vanished", format!("the ref {reference} is gone, but {holder} holds the run")));
        }
    }
    Ok(Held { targets, missed })
}

/// Returns a run with the ref that is its own.
pub(super) fn own_target(run: RunId) -> Target {
    Target { reference: format::run_ref(&run), run }
}

fn checked(code: &'static str, message: String) -> Failure {
    Failure { exit: 3, ..Failure::refused(code, message) }
}
