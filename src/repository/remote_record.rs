//! Records which runs, threads and logs each remote has shown, to notice when one disappears.
//!
//! There is one local file for each remote. It proves nothing to others and changes no ref.
//! Concurrent fetches are harmless: the next fetch completes the record. A name alone does not
//! count: the object was fetched and valid, or a valid log names it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::history;
use crate::git::private_files;
use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format::{self, FETCHED_REFS, REFS};
use crate::model::name::encode_segment;
use crate::model::place::{Kind, MOST_REFS, Place};
use crate::model::printable::cut;
use crate::verify::Logs;

/// The maximum size of a record, in bytes: ten times the size for 50,000 names.
const LARGEST: u64 = 256 << 20;

/// The record of one remote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteRecord {
    /// The name of the remote.
    remote: String,
    /// Shown at the last fetch, with the latest known commit.
    there: BTreeMap<String, Oid>,
    /// Shown before, but not at the last fetch.
    gone: BTreeMap<String, Oid>,
    /// Never shown, but named by a log fetched from it, with the ref of the log.
    #[serde(rename = "named")]
    only_logged: BTreeMap<String, String>,
    /// Shown, but refused when it was last fetched, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, String>,
}

/// A run, thread or log that a remote lacks although it showed it before or a log of its names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Vanished {
    /// The remote.
    #[serde(skip)]
    pub remote: String,
    /// The missing run, thread or log.
    #[serde(flatten)]
    pub place: Place,
    /// Whether the remote showed it before. Otherwise it may never have been pushed.
    #[serde(rename = "seen")]
    pub was_shown: bool,
    /// A local ref that still has it, up to its latest known commit: fetched from this remote, else
    /// our own, else fetched from another; absent if there is none.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub local_copy: Option<String>,
    /// The name of our own ref for it; the ref may not exist.
    #[serde(skip)]
    pub reference: String,
    /// The log, fetched from the remote, that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl Vanished {
    /// Returns true if the remote showed it and no local ref still has it.
    pub fn is_missed(&self) -> bool {
        self.was_shown && self.local_copy.is_none()
    }

    /// Formats what is missing, where a copy is, and which log names it.
    pub fn sentence(&self) -> String {
        let remote = &self.remote;
        let what = format!("{} {:?}", self.place.kind.word(), self.place.name);
        let log = self.log.as_ref();
        match (self.was_shown, &self.local_copy) {
            (true, Some(local_copy)) => {
                format!("{what} is gone from {remote}, where it was; it is kept here, at {local_copy}")
            }
            (true, None) => {
                let log = log.map_or_else(String::new, |log| format!("; the log {log} names it"));
                format!("{what} is gone from {remote}, where it was, and is not here{log}")
            }
            (false, _) => {
                let log = log.map_or_else(|| "a log".to_owned(), |log| format!("the log {log}"));
                format!("{what} is not on {remote} and not here, but {log} names it: it was deleted, or never pushed")
            }
        }
    }
}

/// Summarizes how many runs and threads a remote's log names that the remote never showed.
pub fn unpushed(remote: &str, count: usize) -> String {
    match count {
        1 => format!(
            "a log from {remote} names 1 run or thread that is not there and not here: it was deleted, or never pushed"
        ),
        many => format!(
            "logs from {remote} name {many} runs or threads that are not there and not here: they were deleted, or never pushed"
        ),
    }
}

impl RemoteRecord {
    /// Reads the record of a remote; empty if it was never fetched from.
    pub fn read(store: &Store, remote: &str) -> Result<Self, Error> {
        let path = path(store, remote);
        if path.exists() { parse(path) } else { Ok(Self { remote: remote.to_owned(), ..Self::default() }) }
    }

    /// Reads the records of all remotes, by name. An unreadable one does not hide the others.
    pub fn all(store: &Store) -> Vec<Result<Self, Error>> {
        private_files::all(store, private_files::REMOTES).into_iter().map(parse).collect()
    }

    /// Updates the record with what the remote shows now, what was fetched and what its logs name.
    ///
    /// A recorded item is replaced only by its own continuation. Another run of the same name, or
    /// one that was not accepted, does not replace it.
    pub fn look(&mut self, store: &Store, state: &RemoteState, logged: &BTreeMap<Place, String>) {
        let below = |place: &Place| place.below("");
        let listed: BTreeSet<String> = state.listed.keys().map(below).collect();
        self.refused
            .retain(|name, _| listed.contains(name) && !state.fetched.keys().any(|place| below(place) == *name));
        let refused = state.refused.iter().map(|(place, why)| (below(place), cut(why.clone())));
        self.refused.extend(refused.take(MOST_REFS));
        let mut here: BTreeMap<String, Oid> = state.fetched.iter().map(|(place, oid)| (below(place), *oid)).collect();
        let was_there: BTreeSet<String> = self.there.keys().cloned().collect();
        let mut known = self.known(store, &here);
        for folded in state.folded.iter().map(below) {
            here.remove(&folded);
            known.remove(&folded);
        }
        for (place, oid) in &state.listed {
            let (below, is_refused) = (below(place), state.refused.contains_key(place));
            match known.get(&below).copied() {
                Some(before) if history::goes_on(store, before, *oid) => _ = self.there.insert(below, *oid),
                Some(before) if here.get(&below).is_some_and(|ours| history::goes_on(store, before, *ours)) => {
                    self.there.insert(below, before);
                }
                // It was not part of this fetch, so it may have moved on.
                Some(before) if was_there.contains(&below) && !is_refused && !store.contains(*oid) => {
                    _ = self.there.insert(below, before);
                }
                None if logged.contains_key(place) && !is_refused => _ = self.there.insert(below, *oid),
                _ => {}
            }
        }
        // Branch names are free, so a branch counts only if it has exactly this commit.
        for (place, oid) in &state.branches {
            let below = below(place);
            if let Some(before) = known.get(&below).copied().filter(|before| history::goes_on(store, *before, *oid)) {
                self.there.entry(below).or_insert(before);
            }
        }
        known.retain(|name, _| !self.there.contains_key(name));
        self.gone = known;
        for some in [&mut self.there, &mut self.gone] {
            bound(some, &here);
        }
        let unseen = logged.iter().map(|(place, log)| (below(place), log.clone()));
        let unseen = unseen.filter(|(place, _)| !self.there.contains_key(place) && !self.gone.contains_key(place));
        self.only_logged = unseen.take(MOST_REFS).collect();
    }

    /// Returns everything the remote is known to have had, with the latest known commit.
    fn known(&mut self, store: &Store, here: &BTreeMap<String, Oid>) -> BTreeMap<String, Oid> {
        let (mut there, mut gone) = (std::mem::take(&mut self.there), std::mem::take(&mut self.gone));
        for (below, oid) in here {
            if let Some(before) = gone.get_mut(below) {
                *before = if history::goes_on(store, *before, *oid) { *oid } else { *before };
            } else {
                // A user who deleted the fetched ref and fetched the new one has accepted it.
                let known = there.entry(below.clone()).or_insert(*oid);
                *known = if history::goes_on(store, *oid, *known) { *known } else { *oid };
            }
        }
        there.append(&mut gone);
        there
    }

    /// Writes the record.
    pub fn keep(&self, store: &Store) -> Result<(), Error> {
        private_files::put(store, private_files::REMOTES, &encode_segment(&self.remote), &format::canonical(self))
            .map_err(|e| Error::Write(path(store, &self.remote), e))
    }

    /// Returns what the remote lacks. Our own runs that it never had are not pushed yet and left
    /// out.
    pub fn vanished(&self, store: &Store, logs: &BTreeMap<Place, String>) -> Result<Vec<Vanished>, refs::Error> {
        let folder = format::fetched_refs(&self.remote);
        let gone = self.gone.iter().map(|(below, oid)| (below, Some(*oid)));
        let logged = self.only_logged.keys().map(|below| (below, None));
        let elsewhere = if self.gone.is_empty() { BTreeMap::new() } else { copies(store)? };
        let mut vanished = Vec::new();
        for (below, was) in gone.chain(logged) {
            let Some(place) = Place::parse(below) else { continue };
            let (reference, was_shown) = (place.below(&folder), was.is_some());
            let mut local_copy = None;
            for name in [&reference, &place.below(REFS)].into_iter().chain(elsewhere.get(&place).into_iter().flatten())
            {
                // A local ref of this name with other content is something else.
                let head = match refs::read(store, name) {
                    // An unreadable archive has no copy of it, but must not hide other missing
                    // runs.
                    Err(refs::Error::Archive(_)) => None,
                    other => other?,
                };
                if local_copy.is_none()
                    && head.as_ref().is_some_and(|head| was.is_none_or(|was| history::goes_on(store, was, *head)))
                {
                    local_copy = Some(name.clone());
                }
            }
            let log = logs.get(&place).or_else(|| self.only_logged.get(below)).cloned();
            if was_shown || local_copy.is_none() {
                vanished.push(Vanished { remote: self.remote.clone(), place, was_shown, local_copy, reference, log });
            }
        }
        Ok(vanished)
    }
}

/// The result of one fetch.
#[derive(Clone, Debug, Default)]
pub struct RemoteState {
    /// The runs, threads, logs and archives that it shows at their refs or in archives.
    pub listed: BTreeMap<Place, Oid>,
    /// Its branches whose names could be pushed runs, threads, logs or archives.
    pub branches: Vec<(Place, Oid)>,
    /// Objects fetched from it.
    pub fetched: BTreeMap<Place, Oid>,
    /// Listed, but not accepted, with the reason.
    pub refused: BTreeMap<Place, String>,
    /// Logs that it no longer lists, because a newer log there contains them.
    pub folded: BTreeSet<Place>,
}

/// Returns the refs of what was fetched, by run, thread, log or archive.
fn copies(store: &Store) -> Result<BTreeMap<Place, Vec<String>>, refs::Error> {
    let mut copies = BTreeMap::<Place, Vec<String>>::new();
    for (name, _) in refs::list_with_archived(store, FETCHED_REFS)? {
        if let Some((_, place)) = Place::fetched(&name) {
            copies.entry(place).or_default().push(name);
        }
    }
    Ok(copies)
}

/// Truncates to the maximum number of names; those with a local copy come first.
fn bound(some: &mut BTreeMap<String, Oid>, here: &BTreeMap<String, Oid>) {
    let mut room = MOST_REFS.saturating_sub(some.keys().filter(|below| here.contains_key(*below)).count());
    some.retain(|below, _| {
        let is_kept = here.contains_key(below) || room > 0;
        room -= usize::from(is_kept && !here.contains_key(below));
        is_kept
    });
}

/// Returns what the remotes lacked at their last fetch.
pub fn vanished(store: &Store, logs: &Logs) -> Result<Vec<Vanished>, Error> {
    let all: Vec<Vec<Vanished>> = vanished_by_remote(store, logs).into_iter().collect::<Result<_, _>>()?;
    Ok(all.concat())
}

/// Returns the same for each remote, or why its record is unreadable.
pub fn vanished_by_remote(store: &Store, logs: &Logs) -> Vec<Result<Vec<Vanished>, Error>> {
    RemoteRecord::all(store)
        .into_iter()
        .map(|record| {
            record.and_then(|record| {
                let logged = logs.recorded_places(&format::fetched_refs(&record.remote));
                Ok(record.vanished(store, &logged)?)
            })
        })
        .collect()
}

/// Returns the remotes from which the last fetch of a run refused it, with the reasons. Unreadable
/// records are left out.
pub fn refusals(store: &Store, run: &str) -> Vec<(String, String)> {
    RemoteRecord::all(store)
        .into_iter()
        .flatten()
        .filter_map(|record| {
            let (_, why) = record
                .refused
                .into_iter()
                .find(|(below, _)| Place::parse(below).is_some_and(|at| at.kind == Kind::Run && at.name == run))?;
            Some((record.remote, why))
        })
        .collect()
}

/// Returns the path of a remote's record.
fn path(store: &Store, remote: &str) -> PathBuf {
    private_files::path(store, private_files::REMOTES, &encode_segment(remote))
}

fn parse(path: PathBuf) -> Result<RemoteRecord, Error> {
    let bytes = private_files::read(&path, LARGEST).map_err(|e| Error::Read(path.clone(), e))?;
    let record: RemoteRecord = serde_json::from_slice(&bytes).map_err(|e| Error::Bad(path.clone(), e))?;
    if path.file_name() == Some(encode_segment(&record.remote).as_ref()) {
        return Ok(record);
    }
    let another = serde::de::Error::custom(format!("it is about {:?}", record.remote));
    Err(Error::Bad(path, another))
}

errors! {
    /// An error while reading or writing a record.
    #[derive(Debug, thiserror::Error)] pub enum Error = "remote-record";
    Read(PathBuf, #[source] io::Error): "{0}, which says what a remote has shown, could not be read";
    Bad(PathBuf, #[source] serde_json::Error): "{0} does not say what a remote has shown";
    Write(PathBuf, #[source] io::Error): "what the remote shows could not be written to {0}; what was fetched is here";
    #[from] Ref(refs::Error);
}

impl Error {
    /// Returns the path of the record.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Read(path, _) | Self::Bad(path, _) | Self::Write(path, _) => Some(path),
            Self::Ref(_) => None,
        }
    }
}
