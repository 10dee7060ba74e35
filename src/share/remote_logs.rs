//! Logs of our key on a remote, from any clone: found, continued and folded into one.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::porcelain::Answer;
use crate::git::remote::{self, Reach};
use crate::git::store::{KeepGuard, Store};
use crate::git::{history, refs};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::log_name::LogName;

use super::compare::RemoteRefs;
use super::push::{Delivered, Moved, Pushed, Request, Status};
use super::push_logs::Logs;
use super::shared_refs::refuses;
use super::{Kind, Place};

/// A host's message for a ref that another push is about to move.
const BUSY: [&str; 3] = ["failed to lock", "cannot lock", "failed to update ref"];

/// Returns the heads on the remote that our logs continue; fetches and keeps them.
///
/// Without `folds`, returns at most one, and none if a log of this repository already continues the
/// remote's. Ignores invalid logs.
pub(super) fn heads(
    there: &RemoteRefs<'_>,
    key: &str,
    folds: bool,
    guard: &mut KeepGuard,
) -> Result<BTreeMap<LogName, Oid>, AnyError> {
    let store = there.store;
    let mut candidates = Vec::new();
    for (log, head) in logs_of(&there.has, key) {
        let ours = refs::read(store, &log.reference())?;
        if !folds && ours.is_some_and(|ours| history::goes_on(store, head, ours)) {
            return Ok(BTreeMap::new());
        }
        candidates.push((ours.is_none(), log, head, ours));
    }
    candidates.sort();
    let mut heads = BTreeMap::new();
    for (_, log, head, ours) in candidates {
        let place = Place::of_log(&log);
        if there.bring(&place, head, guard)?.is_some() {
            continue;
        }
        let known = ours.filter(|ours| history::goes_on(store, *ours, head));
        if refuses(&place, store, known, head).is_ok() {
            heads.insert(log, head);
        }
        if !folds && !heads.is_empty() {
            break;
        }
    }
    Ok(heads)
}

/// Returns a key's shared logs among a remote's refs.
pub(super) fn logs_of(has: &BTreeMap<Place, Oid>, key: &str) -> Vec<(LogName, Oid)> {
    let logs = has.iter().filter(|(place, _)| place.kind == Kind::Log);
    let log_heads = logs.filter_map(|(place, head)| Some((LogName::parse(&place.name)?, *head)));
    log_heads.filter(|(log, _)| log.is_further() && log.key() == key).collect()
}

/// Returns how another push may have interfered, if it concerned a log of our key.
pub(super) fn overtaken(
    key: &str,
    moves: &[Moved],
    answers: &[Answer],
    has: &BTreeMap<Place, Oid>,
) -> Option<Overtaken> {
    let logs = || moves.iter().filter(|moved| is_log_of(&moved.place, key) && moved.status.moves());
    let is_moved = logs().any(|moved| {
        let found = has.get(&moved.place).copied();
        found != moved.old && found != Some(moved.new)
    });
    if is_moved {
        return Some(Overtaken::Moved);
    }
    answers
        .iter()
        .any(|answer| {
            let is_log = !answer.accepted && logs().any(|moved| moved.to == answer.to);
            is_log && BUSY.iter().any(|words| answer.summary.contains(words))
        })
        .then_some(Overtaken::Busy)
}

/// The interference of another push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaken {
    /// It moved our log.
    Moved,
    /// It had locked the log's ref.
    Busy,
}

/// Returns true if a place is a log of a key.
pub(super) fn is_log_of(place: &Place, key: &str) -> bool {
    place.kind == Kind::Log && LogName::parse(&place.name).is_some_and(|log| log.key() == key)
}

/// Returns true if the remote shows a later head than the pushed one: another push with the same
/// key continued our log.
pub(super) fn went_on(there: &RemoteRefs<'_>, moved: &Moved, found: Option<Oid>) -> Result<bool, AnyError> {
    let Some(found) = found.filter(|_| moved.place.kind == Kind::Log) else { return Ok(false) };
    let fault = there.bring(&moved.place, found, &mut KeepGuard::default())?;
    Ok(fault.is_none() && history::goes_on(there.store, moved.new, found))
}

/// Returns true if another push began a log of the same key at the same time.
pub(super) fn began_beside(key: &str, Delivered { pushed, before, after }: &Delivered) -> bool {
    let began = pushed.moved.iter().any(|moved| is_log_of(&moved.place, key) && moved.status == Status::New);
    let known: BTreeSet<LogName> = logs_of(before, key).into_iter().map(|(log, _)| log).collect();
    began && logs_of(after, key).into_iter().filter(|(log, _)| !known.contains(log)).count() > 1
}

/// Replaces the status of logs that were folded.
pub(super) fn replace(pushed: &mut Pushed, folded: Pushed) {
    let began: BTreeSet<Place> =
        pushed.moved.iter().filter(|moved| is_log_ref(moved)).map(|moved| moved.place.clone()).collect();
    pushed.moved.retain(|moved| !is_log_ref(moved));
    pushed.moved.extend(
        folded
            .moved
            .into_iter()
            .filter(|moved| is_log_ref(moved) && !(moved.status == Status::Folded && began.contains(&moved.place))),
    );
}

fn is_log_ref(moved: &Moved) -> bool {
    moved.place.kind == Kind::Log
}

/// Returns the status of folded logs.
pub(super) fn retired(logs: &Logs, request: &Request) -> Vec<Moved> {
    logs.folded
        .iter()
        .map(|(log, head)| {
            let place = Place::of_log(log);
            Moved {
                to: place.below(request.space.folder()),
                place,
                old: Some(*head),
                new: *head,
                status: Status::Folded,
            }
        })
        .collect()
}

/// Deletes folded logs on the remote, and their refs here. Keeps one that moved in the meantime or
/// that the remote refuses to delete.
pub(super) fn retire(
    store: &Store,
    reach: &Reach,
    request: &Request,
    mut moves: Vec<Moved>,
) -> Result<Vec<Moved>, AnyError> {
    if request.dry_run || moves.is_empty() {
        return Ok(moves);
    }
    let refs: Vec<(String, Oid)> = moves.iter().map(|moved| (moved.to.clone(), moved.new)).collect();
    let answers = remote::delete(store, reach, &request.remote.given, &refs)?;
    moves.retain(|moved| answers.iter().any(|answer| answer.accepted && answer.to == moved.to));
    for moved in &moves {
        let reference = moved.place.below(format::REFS);
        match refs::read(store, &reference)? {
            Some(head) if history::goes_on(store, head, moved.new) => refs::delete(store, &reference, head)?,
            _ => {}
        }
    }
    Ok(moves)
}
