//! Fetches objects from a remote: history, then the evidence that a partial clone's filter omits.

use std::collections::BTreeMap;

use crate::git::history::is_partial;
use crate::git::remote::{self, Depth, Reach};
use crate::git::store::{self, KeepGuard, Store};
use crate::model::any_error::AnyError;
use crate::model::digest::Oid;

use super::Kind;
use super::archived_runs;
use super::evidence;
use super::fetch::{Error, FetchedRef, Request};

/// The number of attempts with fewer refs, if some of a remote's refs are invalid.
const MOST_TRIES: usize = 100;

/// Fetches the missing objects in one request. Returns the reason if git rejects some; the others
/// are fetched all the same.
pub(super) fn history(
    store: &Store,
    reach: &Reach,
    request: &Request,
    absent: Vec<Oid>,
    guard: &mut KeepGuard,
) -> Result<BTreeMap<Oid, String>, AnyError> {
    let mut unsound = BTreeMap::new();
    let mut batches = if absent.is_empty() { Vec::new() } else { vec![absent] };
    let mut tries = 0;
    while let Some(batch) = batches.pop() {
        tries += 1;
        match remote::fetch(store, reach, &request.remote.given, &batch, Depth::History) {
            Ok(brought) => guard.join(brought),
            // Only smaller requests show which ref is at fault.
            Err(remote::Error::Unsound(..)) if batch.len() > 1 && tries < MOST_TRIES => {
                let (one, other) = batch.split_at(batch.len() / 2);
                batches.extend([other.to_vec(), one.to_vec()]);
            }
            Err(remote::Error::Unsound(_, why)) if batch.len() == 1 => {
                unsound.insert(batch[0], format!("git finds what it holds unsound: {why}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(unsound)
}

/// The needs of the chains of a fetch, by their heads.
pub(super) type NeededByHead = BTreeMap<Oid, evidence::Needed>;

/// Fetches, in one request, the trees that a partial clone's filter omits (`--filter=tree:0`).
/// Returns what the chains with all their trees need.
///
/// This needs a walk, because plain git may have fetched only commits at any time.
pub(super) fn trees(
    store: &Store,
    reach: &Reach,
    request: &Request,
    heads: impl Iterator<Item = (Kind, Oid)>,
    guard: &mut KeepGuard,
) -> Result<NeededByHead, AnyError> {
    let mut needed = NeededByHead::new();
    if !is_partial(store) {
        return Ok(needed);
    }
    let mut missing = Vec::new();
    for (kind, new) in heads {
        match evidence::missing(store, kind, new, request.content) {
            Err(store::Error::Missing(_)) => missing.push(new),
            found => _ = needed.insert(new, found?),
        }
    }
    if !missing.is_empty() {
        guard.join(remote::fetch(store, reach, &request.remote.given, &missing, Depth::Trees)?);
    }
    Ok(needed)
}

/// Fetches the blobs that verify needs and a partial clone's filter omits; returns their number.
pub(super) fn evidence(
    store: &Store,
    reach: &Reach,
    request: &Request,
    refs: &[FetchedRef],
    mut known: NeededByHead,
    guard: &mut KeepGuard,
) -> Result<usize, AnyError> {
    if !is_partial(store) {
        return Ok(0);
    }
    let mut needed = Vec::new();
    for fetched in refs.iter().filter(|fetched| !fetched.status.is_refused()) {
        let kind = fetched.place.kind;
        let found = known.remove(&fetched.new);
        let found = found.map_or_else(|| evidence::missing(store, kind, fetched.new, request.content), Ok)?;
        needed.push((fetched.new, found));
        if kind == Kind::Archive {
            let added = archived_runs::added(store, fetched.old.filter(|_| !request.content), fetched.new)
                .map_err(|fault| Error::Archive(fault.into()))?;
            for (_, run) in added {
                needed.push((run.commit, evidence::missing(store, Kind::Run, run.commit, request.content)?));
            }
        }
    }
    let missing = needed.iter().flat_map(|(_, needed)| &needed.blobs).copied();
    let first = blobs(store, reach, request, missing.collect(), guard)?;
    // The rules that name the documents have only just been fetched.
    let documents = needed.iter().flat_map(|(head, needed)| evidence::looked_into(store, *head, needed));
    Ok(first + blobs(store, reach, request, documents.collect(), guard)?)
}

/// Fetches distinct blobs in one request; returns their number.
fn blobs(
    store: &Store,
    reach: &Reach,
    request: &Request,
    mut oids: Vec<Oid>,
    guard: &mut KeepGuard,
) -> Result<usize, AnyError> {
    oids.sort_unstable();
    oids.dedup();
    if !oids.is_empty() {
        guard.join(remote::fetch(store, reach, &request.remote.given, &oids, Depth::Only)?);
    }
    Ok(oids.len())
}
