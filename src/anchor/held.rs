//! Runs that something else holds as ours, and that are not here.

use std::collections::BTreeMap;

use crate::git::refs;
use crate::git::store::Store;
use crate::model::causes::in_words;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::place::Place;
use crate::run::Target;
use crate::run::target::{self, own_runs};
use crate::verify::Logs;

use super::{Anchor, Means};

/// What becomes of the runs that are held as ours, by logs at hand and by anchors.
pub struct Held {
    /// All runs of this repository, and what was fetched of those that are held and not here.
    pub targets: Vec<Target>,
    /// What cannot be found at all, and who could not say what it holds.
    pub missed: Vec<Missed>,
}

/// Looks up every run of this repository, those with an unreadable ref among them, and every one that its own logs, the logs of its key, or
/// an anchor hold of its key.
pub fn look_up(
    (store, key): (&Store, Option<&str>),
    logs: &Logs,
    (anchors, means): (&[Anchor], &Means),
    unreadable: &[Target],
) -> Result<Held, target::Error> {
    let mut missed: Vec<Missed> = logs.complaints(key).into_iter().map(Missed::Log).collect();
    let mut holders: BTreeMap<RunId, String> =
        logs.held(key).into_iter().map(|(run, log)| (run, format!("the log {log}"))).collect();
    for (anchor, key) in anchors.iter().filter_map(|anchor| Some((anchor, key?))) {
        let name = &anchor.name;
        match anchor.holdings(means, key) {
            Ok(holdings) => {
                let broken = holdings.complaints.into_iter();
                missed.extend(broken.map(|why| Missed::Log(format!("{name}: {why}"))));
                for run in holdings.runs {
                    holders.entry(run).or_insert_with(|| format!("the anchor {name}"));
                }
            }
            Err(why) => {
                missed.push(Missed::Silent { anchor: name.clone(), why });
            }
        }
    }
    let (mut own, were_here) = (own_runs(store)?, logs.held(None));
    // A ref that cannot be read is there, and fails by itself.
    own.extend(unreadable.iter().filter(|target| target.is_own()).map(|target| target.run.clone()));
    holders.retain(|run, _| !own.contains(run));
    let mut targets: Vec<Target> = own.into_iter().map(Target::own).collect();
    let fetched = refs::list_with_archived(store, format::FETCHED_REFS)?;
    for (run, holder) in holders {
        // What our own logs hold was here; of anything else, what was fetched is what there is here.
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
            missed.push(Missed::Gone { reference, holder });
        }
    }
    Ok(Held { targets, missed })
}

/// What is held and cannot be found, or was not said.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Missed {
    #[error("{0}")]
    Log(String),
    #[error("the anchor {anchor} does not say what it holds: {why}")]
    Silent { anchor: String, why: String },
    #[error("{0}")]
    Deleted(String),
    #[error("the run {:?} is archived: {why}", run.as_str())]
    Archived { run: RunId, why: String },
    #[error("the ref {reference} is gone, but {holder} holds the run")]
    Gone { reference: String, holder: String },
}
