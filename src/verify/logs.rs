//! The repository logs at hand: those of this repository, and those that were fetched.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::history;
use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::Place;

use super::log::Log;
use super::{Against, Error, Guarantee, ThreadAnswer, ThreadStatement};

/// The logs of this repository and the fetched logs, each as far as it is sound.
#[derive(Default)]
pub struct Logs {
    pub(super) logs: Vec<Log>,
}

impl Logs {
    /// Reads all logs in the repository. An unreadable ref counts as a broken log.
    pub fn read(store: &Store) -> Result<Self, Error> {
        Self::read_below(store, &[format::LOG_REFS, format::FETCHED_REFS])
    }

    /// Reads the logs that were fetched from one remote.
    pub fn fetched_from(store: &Store, remote: &str) -> Result<Self, Error> {
        Self::read_below(store, &[&format::fetched_refs(remote)])
    }

    fn read_below(store: &Store, folders: &[&str]) -> Result<Self, Error> {
        let mut logs = Vec::new();
        let lazy = history::is_lazy(store);
        for folder in folders {
            let found = refs::list(store, folder).map_err(Error::Refs)?;
            let unreadable = refs::unreadable(store, folder, &found).map_err(Error::Refs)?;
            let found = found.into_iter().filter(|(name, _)| is_log_name(name));
            logs.extend(found.map(|(name, tip)| Log::read(store, name, tip, lazy)));
            let unreadable = unreadable.into_iter().filter(|name| is_log_name(name));
            logs.extend(unreadable.map(|name| Log::unreadable(name, "its ref cannot be read".to_owned())));
        }
        Ok(Self { logs })
    }

    /// Reads one log in another repository than that of the runs.
    pub fn elsewhere(store: &Store, name: String, tip: Oid) -> Self {
        let log = Log::read(store, name, tip, false);
        Self::default().with_witnesses(Self { logs: vec![log] })
    }

    /// Returns the runs in this repository's logs and in all logs of a key, each with the name of
    /// such a log.
    pub fn recorded_runs(&self, key: Option<&str>) -> BTreeMap<RunId, String> {
        let ours = self.logs.iter().filter(|log| log.is_own() || Some(log.fingerprint.as_str()) == key);
        ours.flat_map(|log| log.runs.keys().map(|run| (run.clone(), log.name.clone()))).collect()
    }

    /// Returns the leaf hash of a run's seal, if a log of this repository names it.
    pub fn own_seal(&self, run: &RunId) -> Option<Digest> {
        let own = self.logs.iter().filter(|log| log.is_own());
        own.filter_map(|log| log.runs.get(run)).find(|recorded| recorded.root.is_some()).map(|recorded| recorded.last)
    }

    /// Returns true if a log of this repository, by the key that signed entry 0 of the run, names
    /// that entry.
    ///
    /// A log is signed, so only the holder of that key can have added the statement.
    pub(super) fn began_here(&self, run: &RunId, begun: Option<(&str, Digest)>) -> bool {
        let Some((signer, first)) = begun else { return false };
        let mut own = self.logs.iter().filter(|log| log.is_own() && !log.elsewhere && log.fingerprint == signer);
        own.any(|log| log.runs.get(run).is_some_and(|recorded| recorded.first == first))
    }

    /// Returns true if logs of this repository name the run, and all of them belong to this key.
    ///
    /// Any process with write access can add a log of another key, but cannot remove these
    /// statements.
    pub fn are_all_by(&self, run: &RunId, key: &str) -> bool {
        let own = || self.logs.iter().filter(|log| log.is_own() && !log.elsewhere && log.runs.contains_key(run));
        own().next().is_some() && own().all(|log| log.fingerprint == key)
    }

    /// Returns the sealed roots of a run in the logs.
    pub fn roots(&self, run: &RunId) -> impl Iterator<Item = Digest> {
        self.logs.iter().filter_map(move |log| log.runs.get(run)?.root)
    }

    /// Returns the threads in this repository's logs, each with the largest number of entries and
    /// its log.
    pub fn own_threads(&self) -> BTreeMap<ThreadId, (u64, String)> {
        let mut threads: BTreeMap<ThreadId, (u64, String)> = BTreeMap::new();
        for log in self.logs.iter().filter(|log| log.is_own()) {
            for (thread, recorded) in &log.threads {
                let most = threads.entry(thread.clone()).or_default();
                if most.0 <= recorded.last_seq {
                    *most = (recorded.last_seq.saturating_add(1), log.name.clone());
                }
            }
        }
        threads
    }

    /// Returns the threads that the logs of a key name, in all places, each with such a log.
    pub fn threads_of(&self, key: &str) -> BTreeMap<ThreadId, String> {
        let logs = self.logs.iter().filter(|log| log.fingerprint == key);
        logs.flat_map(|log| log.thread_history.keys().map(|thread| (thread.clone(), log.name.clone()))).collect()
    }

    /// Returns the statements of a key's logs about a thread, and the errors in these logs.
    pub fn statements(&self, thread: &ThreadId, key: &str) -> ThreadAnswer {
        let mut answer = ThreadAnswer::default();
        for log in self.logs.iter().filter(|log| log.fingerprint == key) {
            answer.complaints.extend(log.complaint());
            let statements = log.thread_history.get(thread).into_iter().flatten();
            answer.statements.extend(statements.map(|recorded| ThreadStatement {
                entries: recorded.last_seq.saturating_add(1),
                last: recorded.last,
                since: None,
                at_most: Guarantee::ExternalImmutable,
                notes: Vec::new(),
                against: Against::All,
            }));
        }
        answer
    }

    /// Returns the runs and threads that logs in one folder of refs name, each with such a log.
    ///
    /// The folder is ours, or that of one remote's fetched refs.
    pub fn recorded_places(&self, folder: &str) -> BTreeMap<Place, String> {
        let is_there =
            |log: &&Log| !log.elsewhere && log.name.strip_prefix(folder).is_some_and(|rest| rest.starts_with("logs/"));
        self.logs
            .iter()
            .filter(is_there)
            .flat_map(|log| {
                let chains = log.runs.keys().map(Place::of_run).chain(log.threads.keys().map(Place::of_thread));
                chains.map(|place| (place, log.name.clone())).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns the ref of a remote's run or thread, if a log that was fetched from there names it.
    pub fn fetched_place(&self, remote: &str, place: &Place) -> Option<String> {
        let folder = format::fetched_refs(remote);
        self.recorded_places(&folder).contains_key(place).then(|| place.below(&folder))
    }

    /// Returns the faults in the logs of a key; without a key, those in this repository's logs.
    pub fn complaints(&self, key: Option<&str>) -> BTreeSet<String> {
        self.logs
            .iter()
            .filter(|log| key.map_or_else(|| log.is_own(), |key| log.fingerprint == key))
            .filter_map(Log::complaint)
            .collect()
    }

    /// Adds logs of another repository. They count if their key counts, or if they are that
    /// repository's own.
    pub(super) fn with_witnesses(mut self, others: Self) -> Self {
        self.logs.extend(others.logs.into_iter().map(|log| Log { elsewhere: true, ..log }));
        self
    }

    /// Turns a missing ref into [`Error::Vanished`] if a log beside it, or a fetched log of our
    /// key, holds the run.
    pub(super) fn remember(&self, error: Error, run: &RunId, reference: &str, own_key: Option<&str>) -> Error {
        let Error::NoSuchRun(reference_name) = error else {
            return error;
        };
        let mut ours = self.logs.iter().filter(|log| {
            log.lies_beside(reference)
                || (reference.starts_with(format::RUN_REFS) && Some(log.fingerprint.as_str()) == own_key)
        });
        match ours.find(|log| log.runs.contains_key(run)) {
            Some(log) => Error::Vanished { reference: reference_name, log: log.name.clone() },
            None => Error::NoSuchRun(reference_name),
        }
    }

    /// Turns a missing ref into [`Error::VanishedThread`] if a log beside it holds the thread.
    pub(super) fn remember_thread(&self, error: Error, thread: &ThreadId, reference: &str) -> Error {
        let mut adjacent = self.logs.iter().filter(|log| log.lies_beside(reference));
        match adjacent.find(|log| log.threads.contains_key(thread)) {
            Some(log) => Error::VanishedThread { reference: reference.to_owned(), log: log.name.clone() },
            None => error,
        }
    }
}

fn is_log_name(name: &str) -> bool {
    name.starts_with(format::LOG_REFS) || name.contains("/logs/")
}
