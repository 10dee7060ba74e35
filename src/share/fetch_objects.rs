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

/// Fetches, in one request, the trees that a partial clone's filter omits (`--filter=tree:0`).
///
/// This needs a walk, because plain git may have fetched only commits at any time.
pub(super) fn trees(
    store: &Store,
    reach: &Reach,
    request: &Request,
    heads: impl Iterator<Item = (Kind, Oid)>,
    guard: &mut KeepGuard,
) -> Result<(), AnyError> {
    if !is_partial(store) {
        return Ok(());
    }
    let mut missing = Vec::new();
    for (kind, new) in heads {
        match evidence::missing(store, kind, new, false) {
            Err(store::Error::Missing(_)) => missing.push(new),
            other => _ = other?,
        }
    }
    if !missing.is_empty() {
        guard.join(remote::fetch(store, reach, &request.remote.given, &missing, Depth::Trees)?);
    }
    Ok(())
}

/// Fetches the blobs that verify needs and a partial clone's filter omits; returns their number.
pub(super) fn evidence(
    store: &Store,
    reach: &Reach,
    request: &Request,
    refs: &[FetchedRef],
    guard: &mut KeepGuard,
) -> Result<usize, AnyError> {
    if !is_partial(store) {
        return Ok(0);
    }
    let mut missing = Vec::new();
    let mut runs = Vec::new();
    for fetched in refs.iter().filter(|fetched| !fetched.status.is_refused()) {
        missing.extend(evidence::missing(store, fetched.place.kind, fetched.new, request.content)?);
        match fetched.place.kind {
            Kind::Run => runs.push(fetched.new),
            Kind::Archive => {
                let added = archived_runs::added(store, fetched.old.filter(|_| !request.content), fetched.new)
                    .map_err(|fault| Error::Archive(fault.into()))?;
                runs.extend(added.iter().map(|(_, run)| run.commit));
                for (_, run) in added {
                    missing.extend(evidence::missing(store, Kind::Run, run.commit, request.content)?);
                }
            }
            _ => {}
        }
    }
    let first = blobs(store, reach, request, missing, guard)?;
    // The rules that name the documents have only just been fetched.
    let mut documents = Vec::new();
    for run in runs {
        documents.extend(evidence::looked_into(store, run));
    }
    Ok(first + blobs(store, reach, request, documents, guard)?)
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
