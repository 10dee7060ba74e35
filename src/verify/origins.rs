//! How far what a run took goes back: the runs and threads that it came from, as far as they are here.
//!
//! That something was taken from there is shown by what the run itself holds. Whoever has the others too can hold them against it.

use std::collections::{BTreeSet, VecDeque};

use crate::git::refs;
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;
use crate::model::thread::CheckpointId;

use super::findings::Findings;
use super::signature::of_others;
use super::taken::{Origin, Taken};
use super::witness::AtHand;
use super::{Case, Error, Options, Report, Standpoint, State, resolve, thread_at};
use crate::git::store::Store;

/// More of them are not looked at.
const MOST: usize = 1000;

/// A run or a thread that something was taken from.
#[derive(Clone, Debug)]
pub struct TakenFrom {
    /// Whether it is a run; else it is a thread.
    pub run: bool,
    /// Its name.
    pub name: String,
    /// The root of the run, or the name of the checkpoint.
    pub is: String,
    /// How many steps it is from the run that was asked for.
    pub depth: u32,
    /// Whether it is here, and holds.
    pub here: Here,
}

/// What there is of it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Here {
    /// All of it, and it holds.
    Intact,
    /// Something, and not all of it can be shown to hold.
    Unsure(String),
    /// Something that is not what was taken from, and says it is.
    Contradicts(String),
    /// Nothing.
    Not,
}

impl Here {
    /// Says it in words; what stands for it where it is not here depends on whether it is a run.
    pub fn in_words(&self, run: bool) -> String {
        match self {
            Self::Intact => "here, intact".to_owned(),
            Self::Unsure(why) => format!("here, but {why}"),
            Self::Contradicts(why) => format!("here, and not the same: {why}"),
            Self::Not if run => "not here; its seal and a proof stand for it".to_owned(),
            Self::Not => "not here; its signed entry stands for it".to_owned(),
        }
    }
}

/// Follows what was taken, and says where it ends; what contradicts it is a finding.
pub(super) fn follow(
    store: &Store,
    at_hand: &AtHand<'_>,
    options: &Options,
    taken: &[Taken],
) -> Result<(Vec<TakenFrom>, Findings), Error> {
    let options = Options { base: None, ..of_others(options) };
    let of = |taken: &[Taken], depth: u32| {
        let shown = taken.iter().filter_map(|taken| Some((taken.found.as_ref().ok()?.from.clone(), depth)));
        shown.collect::<Vec<_>>()
    };
    let mut left: VecDeque<(Origin, u32)> = of(taken, 1).into();
    let (mut seen, mut followed, mut findings) = (BTreeSet::new(), Vec::new(), Findings::default());
    while let Some((origin, depth)) = left.pop_front() {
        if !seen.insert(origin.clone()) {
            continue;
        }
        if followed.len() == MOST {
            findings.missing(format!("what it took goes back to more than {MOST} runs and threads"));
            break;
        }
        let (run, name, is, here) = match &origin {
            Origin::Run { run, first, root } => {
                let (here, further) = run_here(store, at_hand, &options, (run, *first, *root))?;
                left.extend(of(&further, depth + 1));
                (true, run.to_string(), root.to_string(), here)
            }
            Origin::Thread { thread, checkpoint, hash } => {
                let here = thread_here(store, at_hand, &options, (thread, checkpoint, *hash))?;
                (false, thread.to_string(), checkpoint.to_string(), here)
            }
        };
        if let Here::Contradicts(why) = &here {
            let what = if run { "run" } else { "thread" };
            findings.add(format!("{what} {name}, which it took from, is here and is not the same: {why}"));
        }
        followed.push(TakenFrom { run, name, is, depth, here });
    }
    Ok((followed, findings))
}

/// Returns the refs at which what lies in a place is here: ours, and those that were fetched.
fn references(store: &Store, place: &Place) -> Result<Vec<String>, Error> {
    let own = Some(place.below(format::REFS)).filter(|own| refs::read(store, own).is_ok_and(|tip| tip.is_some()));
    let fetched = refs::list(store, format::FETCHED_REFS).map_err(Error::Refs)?.into_iter().map(|(name, _)| name);
    Ok(own.into_iter().chain(fetched.filter(|name| place.is_fetched_at(name))).collect())
}

/// Looks for a run that was sealed with a root, and returns what that one took itself.
fn run_here(
    store: &Store,
    at_hand: &AtHand<'_>,
    options: &Options,
    (run, first, root): (&RunId, Digest, Digest),
) -> Result<(Here, Vec<Taken>), Error> {
    let mut here = Here::Not;
    for reference in references(store, &Place::of_run(run))? {
        let case = Case::open(store, run, &reference, options)?;
        if case.chain.links.first().is_none_or(|link| link.hash != first) {
            // Another run of that name is another run.
            continue;
        }
        let Some(seal) = case.seal() else {
            here = Here::Unsure("not to its seal".to_owned());
            continue;
        };
        if super::root::over(&case, seal) != root {
            let why = "it begins as that run does, and its seal says another root";
            return Ok((Here::Contradicts(why.to_owned()), Vec::new()));
        }
        let (report, taken) = super::examined(&case, at_hand);
        return Ok((standing(&report), taken));
    }
    Ok((here, Vec::new()))
}

/// Says how a run stands that has the root that was taken from.
fn standing(report: &Report) -> Here {
    let failed = report.rows.iter().find(|row| row.state == State::Failed);
    let why = failed.map(|row| format!("{}: {}", row.name, row.detail));
    match why {
        None if report.intact => Here::Intact,
        None => Here::Unsure("not all of it".to_owned()),
        Some(why) if report.headline == "TAMPERED" => Here::Contradicts(why),
        Some(why) => Here::Unsure(why),
    }
}

fn thread_here(
    store: &Store,
    at_hand: &AtHand<'_>,
    options: &Options,
    (thread, checkpoint, hash): (&ThreadId, &CheckpointId, Digest),
) -> Result<Here, Error> {
    for reference in references(store, &Place::of_thread(thread))? {
        let Ok(tip) = resolve(store, &reference)? else { continue };
        let at = Standpoint { objects: store, home: store, thread, reference: &reference, place: &reference, tip };
        let examined = thread_at(&at, at_hand.logs, options);
        let finding = examined.report.finding();
        let Ok(sound) = examined.proven(true) else {
            let why = finding.unwrap_or_else(|| "it could not be read to its first entry".to_owned());
            return Ok(Here::Unsure(why));
        };
        if sound.trail.find(checkpoint).is_some_and(|found| found.hash == hash) {
            return Ok(finding.map_or(Here::Intact, Here::Unsure));
        }
    }
    Ok(Here::Not)
}
