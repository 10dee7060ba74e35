//! The repository logs at hand: what each says of the runs, as far as it can be believed.

use std::collections::BTreeMap;

use gix::objs::Kind;
use serde_json::json;

use crate::git::store::Store;
use crate::git::{history, refs};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, LogSealed, LogThread, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};

use super::Error;
use super::objects::{Fault, Objects};
use super::story::Story;

/// The logs of this repository and those that were fetched, each read and checked.
#[derive(Default)]
pub struct Logs {
    pub(super) logs: Vec<Log>,
}

/// One log.
pub(super) struct Log {
    /// Its ref.
    pub(super) name: String,
    /// The fingerprint of the key that it belongs to.
    pub(super) fingerprint: String,
    /// What is wrong with it: such a log anchors nothing.
    pub(super) broken: Option<String>,
    /// What of it is not here, in a repository that leaves things out: such a log contradicts, and holds nothing for sure.
    pub(super) absent: Option<String>,
    /// What it says of each run.
    pub(super) runs: BTreeMap<RunId, Said>,
    /// What it last said of each thread.
    pub(super) threads: BTreeMap<ThreadId, LogThread>,
    /// Whether it is in another repository than the runs, and so beside none of them.
    elsewhere: bool,
}

/// Why a log is no anchor.
pub(super) enum Flaw {
    /// It breaks its own rules, or what it holds is damaged.
    Broken(String),
    /// Some of it is not here.
    Absent(String),
}

/// What a log says of one run.
#[derive(Default)]
pub(super) struct Said {
    /// The leaf hash of the run's entry 0.
    pub(super) first: Option<Digest>,
    /// What the log holds of the seal.
    pub(super) sealed: Option<LogSealed>,
    /// The bytes that its tree held of the run after each of its entries on it.
    records: Vec<Vec<u8>>,
}

impl Logs {
    /// Reads all logs in the repository, our own and those of remotes.
    pub fn read(store: &Store) -> Result<Self, Error> {
        let mut found = refs::list(store, "refs/handoff/logs/").map_err(Error::Refs)?;
        let remotes = refs::list(store, "refs/handoff/remotes/").map_err(Error::Refs)?;
        found.extend(remotes.into_iter().filter(|(name, _)| name.contains("/logs/")));
        let partial = history::is_partial(store) || store.local().is_shallow().unwrap_or(false);
        let logs = found.into_iter().map(|(name, tip)| Log::read(name, &Story::read(store, tip), partial));
        Ok(Self { logs: logs.collect() })
    }

    /// Reads one log in a repository that the runs are not in.
    pub fn elsewhere(store: &Store, name: String, tip: Oid) -> Self {
        let log = Log::read(name, &Story::read(store, tip), false);
        Self::default().with_witnesses(Self { logs: vec![log] })
    }

    /// Returns the runs of this repository that its own logs name, whether their refs are there or not.
    pub fn own_runs(&self) -> impl Iterator<Item = &RunId> {
        let own = self.logs.iter().filter(|log| log.name.starts_with("refs/handoff/logs/"));
        own.flat_map(|log| log.runs.keys())
    }

    /// Adds logs of another repository, which count as witnesses where they are by a writer of the run.
    #[must_use]
    pub fn with_witnesses(mut self, others: Self) -> Self {
        self.logs.extend(others.logs.into_iter().map(|log| Log { elsewhere: true, ..log }));
        self
    }

    /// Makes a ref that is not there one that is gone, if a log of the same place holds its run.
    pub(super) fn remember(&self, error: Error, run: &RunId, reference: &str) -> Error {
        let Error::NoSuchRun(reference_name) = error else {
            return error;
        };
        let mut here = self.logs.iter().filter(|log| log.stands_by(reference));
        match here.find(|log| log.runs.contains_key(run)) {
            Some(log) => Error::Vanished { reference: reference_name, log: log.name.clone() },
            None => Error::NoSuchRun(reference_name),
        }
    }
}

impl Logs {
    /// Makes a thread's ref that is not there one that is gone, if a log of the same place holds the thread.
    pub(super) fn remember_thread(&self, error: Error, thread: &ThreadId, reference: &str) -> Error {
        let mut beside = self.logs.iter().filter(|log| log.stands_beside(reference));
        match beside.find(|log| log.threads.contains_key(thread)) {
            Some(log) => Error::VanishedThread { reference: reference.to_owned(), log: log.name.clone() },
            None => error,
        }
    }
}

impl Log {
    fn read(name: String, story: &Story, partial: bool) -> Self {
        let mut findings = story.findings.clone();
        story.check_order(&mut findings);
        let last = name.rsplit('/').next().unwrap_or_default();
        let named = LogName::decode(last);
        let fingerprint = named.as_ref().map_or_else(String::new, |named| named.key().to_owned());
        if !named.is_none_or(|named| named.fits(story.links.iter().map(|link| link.hash))) {
            findings.add("it has not the entry that its name says".to_owned());
        }
        let mut runs: BTreeMap<RunId, Said> = BTreeMap::new();
        let mut threads: BTreeMap<ThreadId, LogThread> = BTreeMap::new();
        for link in &story.links {
            let seq = link.entry.seq;
            match &link.signer {
                Ok(key) if *key == fingerprint => {}
                Ok(key) => findings.add(format!("entry {seq} is signed by {key}")),
                Err(why) => findings.add(format!("entry {seq}: {why}")),
            }
            let (run, thread) = (link.entry.about.run(), link.entry.about.thread());
            if let (Some(thread), Event::LogThread(e)) = (thread, &link.entry.event) {
                let before = threads.insert(thread.clone(), e.clone());
                if before.is_some_and(|before| before.entries >= e.entries) {
                    findings.add(format!("entry {seq} contradicts what the log said of thread {thread} before"));
                }
                if e.log != fingerprint {
                    findings.add(format!("entry {seq} is of another log, {:?}", e.log));
                }
                continue;
            }
            let Some(run) = run else {
                findings.add(format!("entry {seq} is {}, which has no place in a log", link.entry.event.kind()));
                continue;
            };
            let said = runs.entry(run.clone()).or_default();
            said.records.extend(record(&link.entry));
            let (owner, fits) = match &link.entry.event {
                Event::LogSubmitted(e) => {
                    let fits = said.sealed.is_none() && said.first.is_none_or(|first| first == e.first);
                    said.first = said.first.or(Some(e.first));
                    (&e.log, fits)
                }
                Event::LogSealed(e) => {
                    let fits = said.sealed.as_ref().is_none_or(|sealed| sealed == e);
                    said.sealed = said.sealed.take().or_else(|| Some(e.clone()));
                    (&e.log, fits)
                }
                other => {
                    findings.add(format!("entry {seq} is {}, which has no place in a log", other.kind()));
                    continue;
                }
            };
            if *owner != fingerprint {
                findings.add(format!("entry {seq} is of another log, {owner:?}"));
            }
            if !fits {
                findings.add(format!("entry {seq} contradicts what the log said of run {} before", link.entry.about));
            }
        }
        findings.extend(&story.tree_findings);
        let wrong = findings.first_wrong().or(if partial { None } else { findings.first() }).map(str::to_owned);
        let absent = findings.first().filter(|_| wrong.is_none()).map(str::to_owned);
        Self { name, fingerprint, broken: wrong, absent, runs, threads, elsewhere: false }
    }

    /// Whether the log stands in the same place as a thread's ref: both our own, or both of one remote.
    pub(super) fn stands_beside(&self, reference: &str) -> bool {
        let place = |name: &str, kind: &str| name.rfind(kind).map(|at| name[..at].to_owned());
        let log = place(&self.name, "/logs/");
        !self.elsewhere && log.is_some() && log == place(reference, "/threads/")
    }

    /// Returns what is wrong with the log, or not here of it, where it speaks of a run: with itself, or with the blobs that its
    /// tree held of the run. The entries say all that stands in these, so that they are known by their bytes; a damaged one
    /// would not be noticed otherwise.
    pub(super) fn flaw(&self, objects: &Objects, run: &RunId, lazy: bool) -> Option<Flaw> {
        // Those of a log elsewhere lie elsewhere, too.
        let said = self.runs.get(run).filter(|_| !self.elsewhere);
        let records = said.into_iter().flat_map(|said| &said.records);
        let read = records.filter_map(|bytes| objects.read(objects.hash(Kind::Blob, bytes)?, Kind::Blob).err());
        let (absent, spoilt): (Vec<Fault>, Vec<Fault>) =
            read.partition(|fault| lazy && matches!(fault, Fault::Missing(_)));
        let broken = self.broken.clone().or_else(|| spoilt.first().map(ToString::to_string));
        let absent = self.absent.clone().or_else(|| absent.first().map(ToString::to_string));
        broken.map(Flaw::Broken).or(absent.map(Flaw::Absent))
    }

    /// Whether the log stands in the same place as a run's ref: both our own, or both of one remote.
    pub(super) fn stands_by(&self, reference: &str) -> bool {
        let place = |name: &str, kind: &str| name.rfind(kind).map(|at| name[..at].to_owned());
        let log = place(&self.name, "/logs/");
        !self.elsewhere && log.is_some() && log == place(reference, "/runs/")
    }
}

/// Returns the place of what an entry of a log says, in the log's tree.
pub(super) fn place(entry: &Entry) -> String {
    match &entry.about {
        Subject::Run(run) => format::log_path(run),
        Subject::Thread(thread) => format::log_thread_path(thread),
    }
}

/// Returns the bytes that a log's tree holds of a run or thread after an entry.
pub(super) fn record(entry: &Entry) -> Option<Vec<u8>> {
    let about = entry.about.as_str();
    let value = match &entry.event {
        Event::LogSubmitted(e) => json!({ "run": about, "first": e.first }),
        Event::LogSealed(e) => {
            json!({ "run": about, "root": e.root, "entries": e.entries, "seal": e.seal, "commit": e.commit })
        }
        Event::LogThread(e) => json!({ "thread": about, "entries": e.entries, "last": e.last }),
        _ => return None,
    };
    Some(format::canonical(&value))
}
