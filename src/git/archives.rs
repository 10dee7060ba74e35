//! Looks up sealed runs in archives, for runs that no longer have refs of their own.
//!
//! Reading an archive checks only that its entries parse. Signatures and runs are checked when an
//! archive is fetched; a run found here is verified like any other.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::codec;
use super::ref_lookup;
use super::store::{self, Store};
use crate::model::bounds::{self, Meter};
use crate::model::digest::Oid;
use crate::model::entry::{ArchivedRun, Event};
use crate::model::format::{self, ARCHIVE_REFS, FETCHED_REFS, KEPT_REF, LOG_REFS, REFS};
use crate::model::name::RunId;
use crate::model::place::{Kind, Place};

/// The runs of an archive, each as its latest entry records it.
pub type Contents = BTreeMap<RunId, ArchivedRun>;

/// A cache by the last commit of an archive: its contents, or `None` if it is not an archive.
pub(super) type Known = HashMap<Oid, Option<Arc<Contents>>>;

/// The most runs that the cache holds in memory.
const MOST_KNOWN: usize = 200_000;

/// Looks up a ref that does not exist: runs and time stamps in the archive of the same folder,
/// transcripts and salvaged work among the refs kept for archived runs.
///
/// An unreadable local archive is an error only for a run that a local log names: no other run can
/// be in it.
pub(super) fn find(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    let fetched = Place::fetched(name).map(|(remote, place)| (format::fetched_refs(remote), place));
    let Some((folder, place)) = fetched.or_else(|| Some((REFS.to_owned(), Place::parse(name.strip_prefix(REFS)?)?)))
    else {
        return find_in_kept_ref(store, name);
    };
    if !matches!(place.kind, Kind::Run | Kind::Stamps) {
        return find_in_kept_ref(store, name);
    }
    let Ok(run) = RunId::parse(&place.name) else { return Ok(None) };
    let mut unreadable = None;
    for (reference, tip) in ref_lookup::list(store, &format!("{folder}archives/"))? {
        if folder_of(&reference).is_none() {
            continue;
        }
        let contents = match read_archive(store, &reference, tip) {
            Err(error @ Error::Unreadable(..)) => {
                unreadable = Some(error);
                continue;
            }
            other => other?,
        };
        let archived = contents.and_then(|contents| contents.get(&run).copied());
        if let Some(oid) =
            archived.and_then(|archived| if place.kind == Kind::Run { Some(archived.commit) } else { archived.stamps })
        {
            return Ok(Some(oid));
        }
    }
    match unreadable {
        Some(error) if is_logged(store, &run)? => Err(error),
        _ => Ok(None),
    }
}

/// Returns true if a local log names the run or cannot be read.
fn is_logged(store: &Store, run: &RunId) -> Result<bool, Error> {
    Ok(ref_lookup::list(store, LOG_REFS)?.into_iter().any(|(_, tip)| names_run(tip, store, run).unwrap_or(true)))
}

fn names_run(tip: Oid, store: &Store, run: &RunId) -> Result<bool, store::Error> {
    Ok(store.blob_at(store.commit(tip)?.0, &format::log_path(run))?.is_some())
}

/// Returns the local archives that cannot be read, each with the reason.
pub fn unreadable(store: &Store) -> Result<Vec<Error>, Error> {
    let mut unreadable = Vec::new();
    for (reference, tip) in ref_lookup::list(store, ARCHIVE_REFS)? {
        if folder_of(&reference).is_none() {
            continue;
        }
        match read_archive(store, &reference, tip) {
            Err(error @ Error::Unreadable(..)) => unreadable.push(error),
            other => drop(other?),
        }
    }
    Ok(unreadable)
}

/// Returns the refs below a prefix that archives provide, even if such a ref also exists. The
/// prefix ends with a slash.
///
/// Skips unreadable archives; [`unreadable`] lists the local ones.
pub(super) fn below(store: &Store, prefix: &str) -> Result<BTreeMap<String, Oid>, Error> {
    let folder = if prefix.starts_with(FETCHED_REFS) { prefix } else { ARCHIVE_REFS };
    let mut archives = ref_lookup::list(store, folder)?;
    if prefix == REFS {
        archives.extend(ref_lookup::list(store, FETCHED_REFS)?);
    }
    let mut refs = BTreeMap::new();
    for (reference, tip) in archives {
        let Some(at) = folder_of(&reference) else { continue };
        let contents = match read_archive(store, &reference, tip) {
            Err(Error::Unreadable(..)) => continue,
            other => other?,
        };
        let Some(contents) = contents else { continue };
        for (run, archived) in contents.iter() {
            let place = Place::of_run(run);
            let stamps = place.stamps().zip(archived.stamps).map(|(stamps, tree)| (stamps.below(&at), tree));
            let found = [Some((place.below(&at), archived.commit)), stamps].into_iter().flatten();
            // The first of several wins, as in the lookup by name.
            found
                .filter(|(name, _)| name.starts_with(prefix))
                .for_each(|(name, oid)| _ = refs.entry(name).or_insert(oid));
        }
    }
    Ok(refs)
}

/// Returns the folder of refs, local or of a remote, that an archive ref is in, or `None` for other
/// refs.
pub fn folder_of(reference: &str) -> Option<String> {
    if reference.starts_with(ARCHIVE_REFS) {
        return reference.strip_prefix(REFS).and_then(Place::parse).filter(is_archive).map(|_| REFS.to_owned());
    }
    let (remote, place) = Place::fetched(reference)?;
    is_archive(&place).then(|| format::fetched_refs(remote))
}

fn is_archive(place: &Place) -> bool {
    place.kind == Kind::Archive
}

/// Returns the contents of an archive. An unreadable archive of a remote counts as empty; `doctor`
/// reports it.
fn read_archive(store: &Store, reference: &str, tip: Oid) -> Result<Option<Arc<Contents>>, Error> {
    let is_fetched = reference.starts_with(FETCHED_REFS);
    if is_fetched && known(store).get(&tip) == Some(&None) {
        return Ok(None);
    }
    match contents(store, tip) {
        Ok(contents) => Ok(Some(contents)),
        Err(why) if is_fetched => {
            // Missing objects may still arrive; other faults are final.
            if !matches!(why, Fault::Store(_)) {
                remember(store, tip, None);
            }
            Ok(None)
        }
        Err(why) => Err(Error::Unreadable(reference.to_owned(), Box::new(why))),
    }
}

/// Returns the runs of the archive that ends at a commit.
pub fn contents(store: &Store, tip: Oid) -> Result<Arc<Contents>, Fault> {
    if let Some(Some(known)) = known(store).get(&tip) {
        return Ok(known.clone());
    }
    let (mut contents, mut meter, mut next) = (Contents::new(), Meter::default(), Some(tip));
    while let Some(commit) = next {
        let object = store.whole(commit)?;
        meter.add(object.bytes.len() as u64, object.stored)?;
        let decoded = codec::decode(&object.bytes).map_err(|error| Fault::Entry(commit, error))?;
        let Event::ArchiveAdded(added) = decoded.entry.event else { return Err(Fault::Kind(commit)) };
        for (run, archived) in added.runs {
            contents.entry(run).or_insert(archived);
        }
        next = decoded.parents.first().copied().filter(|_| decoded.entry.prev.is_some());
    }
    let contents = Arc::new(contents);
    remember(store, tip, Some(contents.clone()));
    Ok(contents)
}

/// Locks the cache of archives that were read.
fn known(store: &Store) -> MutexGuard<'_, Known> {
    store.known.archives.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Caches the contents of an archive while the cache holds at most [`MOST_KNOWN`] runs.
fn remember(store: &Store, tip: Oid, contents: Option<Arc<Contents>>) {
    let mut known = known(store);
    let runs: usize = known.values().chain([&contents]).flatten().map(|contents| contents.len()).sum();
    if runs > MOST_KNOWN || known.len() >= MOST_KNOWN {
        known.clear();
    }
    known.insert(tip, contents);
}

/// Looks up a ref kept for an archived run that is not evidence.
fn find_in_kept_ref(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    let Some((folder, segment)) = name.strip_prefix(REFS).and_then(|below| below.split_once('/')) else {
        return Ok(None);
    };
    let run = RunId::decode(segment).filter(|_| matches!(folder, "transcripts" | "salvage"));
    let Some((run, commit)) = run.zip(ref_lookup::find(store, KEPT_REF)?) else { return Ok(None) };
    let found = store.commit(commit).and_then(|parts| store.tree_at(parts.0, &format::kept_path(folder, &run)));
    found.map_err(|error| Error::Unreadable(KEPT_REF.to_owned(), Box::new(error.into())))
}

errors! {
    /// Why archives cannot be searched.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Unreadable(String, #[source] Box<Fault>): "{0}, which holds archived runs, cannot be read";
    #[from] Refs(ref_lookup::Error);
}

errors! {
    /// Why an archive cannot be read.
    #[derive(Debug, thiserror::Error)] pub enum Fault = "archive";
    Entry(Oid, #[source] codec::Error): "commit {0} of the archive cannot be read";
    Kind(Oid): "commit {0} is not an entry of an archive";
    #[from "archive"] Store(store::Error), TooMuch(bounds::TooMuch);
}
