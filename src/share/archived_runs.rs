//! Archived runs: pushed and fetched within archives, which replace their refs.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::archives::{self, Fault};
use crate::git::remote::{self, Reach};
use crate::git::store::Store;
use crate::git::{history, refs};
use crate::model::any_error::AnyError;
use crate::model::archive::ArchivedRun;
use crate::model::digest::Oid;
use crate::model::format::REFS;
use crate::model::name::RunId;

use super::compare;
use super::push::{Pushed, Request, Status, Stays};
use super::{Kind, Place};

/// Returns the runs that an archive contains at `new` but not at `old`.
pub(super) fn added(store: &Store, old: Option<Oid>, new: Oid) -> Result<Vec<(RunId, ArchivedRun)>, Fault> {
    let before = old.map(|old| archives::contents(store, old)).transpose()?.unwrap_or_default();
    let now = archives::contents(store, new)?;
    Ok(now
        .iter()
        .filter(|(run, archived)| before.get(*run) != Some(archived))
        .map(|(run, archived)| (run.clone(), *archived))
        .collect())
}

/// Returns the content of the archives that end at these commits; the first of several counts.
fn read_contents(store: &Store, tips: impl Iterator<Item = Oid>) -> BTreeMap<Place, Oid> {
    let mut merged = BTreeMap::new();
    for contents in tips.filter_map(|tip| archives::contents(store, tip).ok()) {
        for (run, archived) in contents.iter() {
            let place = Place::of_run(run);
            let stamps = place.stamps().zip(archived.stamps);
            let both = stamps.into_iter().chain([(place, archived.commit)]);
            both.for_each(|(key, oid)| _ = merged.entry(key).or_insert(oid));
        }
    }
    merged
}

/// Returns the content of a remote's archives that were fetched and accepted.
pub(super) fn fetched(
    store: &Store,
    folder: &str,
    listed_places: &BTreeSet<Place>,
) -> Result<BTreeMap<Place, Oid>, refs::Error> {
    let listed = refs::list(store, folder)?;
    let place = |name: &str| name.strip_prefix(folder).and_then(Place::parse);
    let archives = listed.iter().filter(|(name, _)| {
        place(name).is_some_and(|place| place.kind == Kind::Archive && listed_places.contains(&place))
    });
    Ok(read_contents(store, archives.map(|(_, tip)| *tip)))
}

/// Returns the content of a remote's archives that are known here: ours and fetched ones.
pub(super) fn on_remote(store: &Store, has: &BTreeMap<Place, Oid>) -> Result<BTreeMap<Place, Oid>, refs::Error> {
    let listed = refs::list(store, REFS)?;
    let known: Vec<(Place, Oid)> = listed.iter().filter_map(|(name, tip)| Some((Place::of_ref(name)?, *tip))).collect();
    let archives = has.iter().filter(|(place, tip)| place.kind == Kind::Archive && store.contains(**tip));
    let tips = archives.filter(|(place, tip)| {
        known.iter().any(|(known, ours)| known == *place && history::goes_on(store, **tip, *ours))
    });
    Ok(read_contents(store, tips.map(|(_, tip)| *tip)))
}

/// Returns the first archived run that differs from the fetched run of its name.
pub(super) fn clash(store: &Store, folder: &str, old: Option<Oid>, new: Oid) -> Result<Option<String>, AnyError> {
    for (run, archived) in added(store, old, new)? {
        let reference = Place::of_run(&run).below(folder);
        let Some(here) = refs::read(store, &reference)? else { continue };
        // Two people chose the same id; neither run is a forgery of the other.
        if !history::goes_on(store, here, archived.commit) && !compare::are_by_two(store, here, archived.commit) {
            let name = run.as_str();
            return Ok(Some(format!(
                "run {name:?}, which it holds, does not go on from what was fetched before, {here}"
            )));
        }
    }
    Ok(None)
}

/// Deletes fetched refs that a remote now has only in archives; returns the names of the runs.
///
/// Nothing is lost: the fetched archive contains exactly that run.
pub(super) fn give_way(
    store: &Store,
    folder: &str,
    listed_places: &BTreeSet<Place>,
    in_archives: &BTreeMap<Place, Oid>,
) -> Result<Vec<String>, refs::Error> {
    let there: BTreeMap<String, Oid> = refs::list(store, folder)?.into_iter().collect();
    let (mut runs, mut gone) = (Vec::new(), Vec::new());
    for (place, archived) in in_archives.iter().filter(|(place, _)| !listed_places.contains(place)) {
        let reference = place.below(folder);
        let Some(here) = there.get(&reference).copied() else { continue };
        if here == *archived || (place.kind == Kind::Run && history::goes_on(store, here, *archived)) {
            runs.extend(Some(place.name.clone()).filter(|_| place.kind == Kind::Run));
            gone.push((reference, here));
        }
    }
    refs::delete_all(store, &gone)?;
    Ok(runs)
}

/// Deletes the remote's refs of archived runs, each only if unchanged. Reports refused ones.
pub(super) fn retire(store: &Store, reach: &Reach, request: &Request, pushed: &mut Pushed) -> Result<(), AnyError> {
    let archives = pushed.moved.iter().filter(|moved| moved.place.kind == Kind::Archive);
    let there = read_contents(store, archives.map(|moved| moved.new));
    pushed.moved.retain(|moved| moved.status != Status::Archived || there.get(&moved.place) == Some(&moved.new));
    let archived = pushed.moved.iter().filter(|moved| moved.status == Status::Archived);
    let refs: Vec<(String, Oid)> = archived.filter_map(|moved| Some((moved.to.clone(), moved.old?))).collect();
    if request.dry_run || refs.is_empty() {
        return Ok(());
    }
    let answers = remote::delete(store, reach, &request.remote.given, &refs)?;
    let refused = answers.into_iter().filter(|answer| !answer.accepted);
    pushed.stays = refused.map(|answer| Stays { reference: answer.to, reason: answer.summary }).collect();
    let stays: BTreeSet<&String> = pushed.stays.iter().map(|stays| &stays.reference).collect();
    pushed.moved.retain(|moved| moved.status != Status::Archived || !stays.contains(&moved.to));
    Ok(())
}
