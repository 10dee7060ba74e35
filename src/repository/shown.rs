//! What each remote has shown of runs, threads and logs: whoever saw one there knows that it was there, also when it is gone.
//!
//! There is a mark of ours for each remote. It proves nothing to others, and no ref is made or deleted by it. What two fetches of one
//! remote see at once, the next one sees again. A name alone says nothing: what counts as seen was fetched, and sound, or a sound log names it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::history;
use crate::git::marks;
use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format::{self, REFS};
use crate::model::name::encode_segment;
use crate::model::place::{MOST_REFS, Place};
use crate::verify::Logs;

use super::read_up_to;

/// A file that is larger than this is none of ours: 50,000 names are a tenth of it.
const LARGEST: u64 = 256 << 20;

/// What one remote has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// The name of the remote.
    remote: String,
    /// What it showed when it was last looked at, each with how far it is known to have gone.
    there: BTreeMap<String, Oid>,
    /// What it showed before, and not then.
    gone: BTreeMap<String, Oid>,
    /// What it never showed, and a log that was fetched from it names: each with the ref of the log.
    named: BTreeMap<String, String>,
}

/// A run, thread or log that a remote does not show, although it did before or a log of its names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vanished {
    /// The remote.
    pub remote: String,
    /// What it is.
    pub place: Place,
    /// Whether the remote showed it before. Otherwise it may never have been pushed.
    pub seen: bool,
    /// The ref here that holds it: what was fetched from there, else ours.
    pub kept: Option<String>,
    /// Our ref for it, whether it is there or not.
    pub reference: String,
    /// The log that names it, fetched from there.
    pub log: Option<String>,
}

impl Vanished {
    /// Returns whether evidence that was there is nowhere that is known: what is here, or perhaps never was there, is only told of.
    pub fn is_missed(&self) -> bool {
        self.seen && self.kept.is_none()
    }

    /// Says of what a remote does not show where it is, if anywhere, and who knows of it.
    pub fn sentence(&self) -> String {
        let remote = &self.remote;
        let what = format!("{} {:?}", self.place.kind.word(), self.place.name);
        let log = self.log.as_ref();
        match (self.seen, &self.kept) {
            (true, Some(kept)) => format!("{what} is gone from {remote}, where it was; it is kept here, at {kept}"),
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

impl Shown {
    /// Reads what was seen on one remote; nothing, where it was never looked at.
    pub fn read(store: &Store, remote: &str) -> Result<Self, Error> {
        let path = path(store, remote);
        if path.exists() { parse(path) } else { Ok(Self { remote: remote.to_owned(), ..Self::default() }) }
    }

    /// Reads what was seen on all remotes, in order of their names.
    pub fn all(store: &Store) -> Result<Vec<Self>, Error> {
        marks::all(store, marks::REMOTES).into_iter().map(parse).collect()
    }

    /// Takes in what the remote shows now, what was fetched from it before, and what its logs name.
    pub fn look(&mut self, store: &Store, seen: &Seen, named: &BTreeMap<Place, String>) {
        let below = |place: &Place| place.below("");
        let here: BTreeMap<String, Oid> = seen.fetched.iter().map(|(place, oid)| (below(place), *oid)).collect();
        let mut known = std::mem::take(&mut self.there);
        known.append(&mut self.gone);
        known.extend(here.clone());
        let goes_on = |from: Oid, to: Oid| from == to || history::continues(store, from, to).unwrap_or(false);
        for (place, oid) in &seen.listed {
            let below = below(place);
            match known.get(&below).copied() {
                Some(before) => drop(self.there.insert(below, if goes_on(before, *oid) { *oid } else { before })),
                None if named.contains_key(place) => drop(self.there.insert(below, *oid)),
                None => {}
            }
        }
        // A branch stands for what was pushed as one, and is named as anybody likes: only one that holds just that does.
        for (place, oid) in &seen.branches {
            let below = below(place);
            if let Some(before) = known.get(&below).copied().filter(|before| goes_on(*before, *oid)) {
                self.there.entry(below).or_insert(before);
            }
        }
        known.retain(|below, _| !self.there.contains_key(below));
        self.gone = known;
        for some in [&mut self.there, &mut self.gone] {
            bound(some, &here);
        }
        let unseen = named.iter().map(|(place, log)| (below(place), log.clone()));
        let unseen = unseen.filter(|(place, _)| !self.there.contains_key(place) && !self.gone.contains_key(place));
        self.named = unseen.take(MOST_REFS).collect();
    }

    /// Writes it down.
    pub fn keep(&self, store: &Store) -> Result<(), Error> {
        marks::put(store, marks::REMOTES, &encode_segment(&self.remote), &format::canonical(self))
            .map_err(|e| Error::Write(path(store, &self.remote), e))
    }

    /// Returns what the remote does not show. What it never did, and is ours, was not pushed, and is left out.
    pub fn vanished(&self, store: &Store, logs: &BTreeMap<Place, String>) -> Result<Vec<Vanished>, refs::Error> {
        let folder = format::fetched_refs(&self.remote);
        let gone = self.gone.keys().map(|below| (below, true));
        let named = self.named.keys().map(|below| (below, false));
        let mut vanished = Vec::new();
        for (below, seen) in gone.chain(named) {
            let Some(place) = Place::parse(below) else { continue };
            let (reference, own) = (place.below(&folder), place.below(REFS));
            let is_here = |name: &String| refs::read(store, name).map(|found| found.is_some());
            let kept = match (is_here(&reference)?, is_here(&own)?) {
                (true, _) => Some(reference.clone()),
                (false, true) => Some(own),
                (false, false) => None,
            };
            let log = logs.get(&place).or_else(|| self.named.get(below)).cloned();
            if seen || kept.is_none() {
                vanished.push(Vanished { remote: self.remote.clone(), place, seen, kept, reference, log });
            }
        }
        Ok(vanished)
    }
}

/// What one look at a remote comes to.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The runs, threads, logs and archives that it shows where they are pushed to, or has in archives.
    pub listed: BTreeMap<Place, Oid>,
    /// Its branches that are called as if they held such a one.
    pub branches: Vec<(Place, Oid)>,
    /// What was fetched from it before, and is here.
    pub fetched: BTreeMap<Place, Oid>,
}

/// Keeps no more than may be written down: what is here first.
fn bound(some: &mut BTreeMap<String, Oid>, here: &BTreeMap<String, Oid>) {
    let mut room = MOST_REFS.saturating_sub(some.keys().filter(|below| here.contains_key(*below)).count());
    some.retain(|below, _| {
        let is_kept = here.contains_key(below) || room > 0;
        room -= usize::from(is_kept && !here.contains_key(below));
        is_kept
    });
}

/// Returns what the remotes do not show, as it was when each was last looked at.
pub fn vanished(store: &Store, logs: &Logs) -> Result<Vec<Vanished>, Error> {
    let mut vanished = Vec::new();
    for shown in Shown::all(store)? {
        let named = logs.named(&format::fetched_refs(&shown.remote));
        vanished.extend(shown.vanished(store, &named)?);
    }
    Ok(vanished)
}

/// Returns the file that keeps what was seen on a remote.
fn path(store: &Store, remote: &str) -> PathBuf {
    marks::path(store, marks::REMOTES, &encode_segment(remote))
}

fn parse(path: PathBuf) -> Result<Shown, Error> {
    let bytes = read_up_to(&path, LARGEST).map_err(|e| Error::Read(path.clone(), e))?;
    serde_json::from_slice(&bytes).map_err(|e| Error::Bad(path, e))
}

/// Why it is not known what a remote has shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{0}, which says what a remote has shown, could not be read")]
    Read(PathBuf, #[source] io::Error),
    /// The file is none of ours.
    #[error("{0} does not say what a remote has shown")]
    Bad(PathBuf, #[source] serde_json::Error),
    /// It cannot be told what of it is here.
    #[error(transparent)]
    Ref(#[from] refs::Error),
    /// The file could not be written. What was fetched is here.
    #[error("what the remote shows could not be written to {0}; what was fetched is here")]
    Write(PathBuf, #[source] io::Error),
}
