//! One repository log: what it says, as far as it is sound.
//!
//! Whoever may write to the place of a log can put anything on top of it, but sign nothing with its key. So a log is read from its
//! first entry on: every entry before the first unsound one stays that key's word for ever, and the log is known to be broken.

use std::collections::{BTreeMap, HashMap};

use gix::objs::Kind;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, LogSealed, LogThread, Subject};
use crate::model::format::{self, Layout};
use crate::model::log_name::LogName;
use crate::model::log_record::Record;
use crate::model::name::{RunId, ThreadId};

use super::objects::{Fault, Objects, each};
use super::order::{self, Parents};
use super::reader::{Back, Commit, Link, Stop, Walk, Walked};
use super::signature::{Signed, Writers};
use super::tree::{self, Accounted, Changes, Room};

/// How many entries are held against their trees at once.
const BATCH: usize = 4096;

/// A history of more commits than this is not read, and said to be too long: no log comes near it.
const MOST: usize = 1 << 22;

/// One log.
pub(super) struct Log {
    /// Its ref.
    pub(super) name: String,
    /// The fingerprint of the key that it belongs to; empty where its name gives none.
    pub(super) fingerprint: String,
    /// Why its end cannot be believed. What it says before that counts.
    pub(super) broken: Option<String>,
    /// Why it could not be read in a repository that leaves things out.
    pub(super) unread: Option<String>,
    /// What it says of each run.
    pub(super) runs: BTreeMap<RunId, Said>,
    /// What it last said of each thread.
    pub(super) threads: BTreeMap<ThreadId, LogThread>,
    /// All that its key signed about each thread, the first word first, also where the log is broken before it.
    pub(super) told: BTreeMap<ThreadId, Vec<LogThread>>,
    /// Whether it is in another repository than the runs, and so beside none of them.
    pub(super) elsewhere: bool,
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

/// What is wrong with what a log's tree held of a run.
pub(super) enum Spoilt {
    /// It is damaged, or gone from a repository that should have it.
    Damaged(String),
    /// It is not here, in a repository that leaves things out: such a log contradicts, and holds nothing for sure.
    Absent(String),
}

impl Log {
    /// Reads the log at a ref; `lazy` says that the repository leaves things out.
    pub(super) fn read(store: &Store, name: String, tip: Oid, lazy: bool) -> Self {
        let mut log = Self { broken: None, ..Self::unreadable(name, String::new()) };
        let mut reading = Reading { lazy, ..Reading::default() };
        let Walked { commits, stop, .. } = Walk::new(Back::ToRoot { strangers: MOST, commits: MOST }).read(store, tip);
        let wrong = match stop {
            None => reading.take(store, &commits, &mut log).err(),
            Some(Stop::Fault(fault @ Fault::Missing(_))) if lazy => {
                log.unread = Some(fault.to_string());
                return log;
            }
            Some(Stop::Fault(fault)) => Some(format!("it could not be read to its first entry: {fault}")),
            Some(stop) => Some(stop.to_string()),
        };
        log.hear_out(&commits[reading.hashes.len()..]);
        let named = LogName::decode(log.name.rsplit('/').next().unwrap_or_default());
        let misnamed = !named.is_none_or(|named| named.fits(reading.hashes.into_iter()));
        log.unread = reading.unread;
        log.broken = match (wrong, reading.last) {
            (Some(why), Some(last)) => Some(format!("{why}; what it says up to entry {} counts", last.entry.seq)),
            (None, _) if misnamed => Some("it has not the entry that its name says".to_owned()),
            (wrong, _) => wrong,
        };
        log
    }

    /// A log of which nothing could be read.
    pub(super) fn unreadable(name: String, why: String) -> Self {
        let named = LogName::decode(name.rsplit('/').next().unwrap_or_default());
        let fingerprint = named.map_or_else(String::new, |named| named.key().to_owned());
        let (runs, threads, told) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { name, fingerprint, broken: Some(why), unread: None, runs, threads, told, elsewhere: false }
    }

    /// Whether it is one of this repository's own.
    pub(super) fn is_own(&self) -> bool {
        self.name.starts_with(format::LOG_REFS)
    }

    /// Returns what is wrong with it, with its name; none if it could be read to its end.
    pub(super) fn complaint(&self) -> Option<String> {
        self.broken.as_ref().map(|why| format!("{} is broken: {why}", self.name))
    }

    /// Whether the log stands in the same place as a thread's ref: both our own, or both of one remote.
    pub(super) fn stands_beside(&self, reference: &str) -> bool {
        self.is_in_the_place_of(reference, "/threads/")
    }

    /// Whether the log stands in the same place as a run's ref: both our own, or both of one remote.
    pub(super) fn stands_by(&self, reference: &str) -> bool {
        self.is_in_the_place_of(reference, "/runs/")
    }

    fn is_in_the_place_of(&self, reference: &str, kind: &str) -> bool {
        let place = |name: &str, kind: &str| name.rfind(kind).map(|at| name[..at].to_owned());
        let log = place(&self.name, "/logs/");
        !self.elsewhere && log.is_some() && log == place(reference, kind)
    }

    /// Returns what is wrong with the blobs that its tree held of a run. The entries say all that stands in them, so that
    /// they are known by their bytes; a damaged one would not be noticed otherwise.
    pub(super) fn spoilt(&self, objects: &Objects, run: &RunId, lazy: bool) -> Option<Spoilt> {
        // Those of a log elsewhere lie elsewhere, too.
        let said = self.runs.get(run).filter(|_| !self.elsewhere);
        let records = said.into_iter().flat_map(|said| &said.records);
        let read = records.filter_map(|bytes| objects.read(objects.hash(Kind::Blob, bytes)?, Kind::Blob).err());
        let faults: Vec<Fault> = read.collect();
        let is_absent = |fault: &&Fault| lazy && matches!(fault, Fault::Missing(_));
        let damaged = faults.iter().find(|fault| !is_absent(fault));
        let damaged = damaged.map(|fault| Spoilt::Damaged(format!("{} is broken: {fault}", self.name)));
        damaged.or_else(|| faults.first().map(|fault| Spoilt::Absent(fault.to_string())))
    }

    /// Takes in what its key signed about threads in commits that are no sound part of it: each such entry is evidence by itself.
    fn hear_out(&mut self, commits: &[Commit]) {
        for link in commits.iter().flatten().filter(|link| link.signer.as_deref() == Ok(self.fingerprint.as_str())) {
            if let (Subject::Thread(thread), Event::LogThread(said)) = (&link.entry.about, &link.entry.event) {
                self.told.entry(thread.clone()).or_default().push(said.clone());
            }
        }
    }

    /// Takes a sound entry's word, unless it is not one that a log says or contradicts what was said before.
    fn hear(&mut self, entry: &Entry) -> Result<(), String> {
        let seq = entry.seq;
        let about = |kind: &str| format!("entry {seq} is {kind}, which has no place in a log");
        let contradiction = || format!("entry {seq} contradicts what the log said of {} before", entry.about.as_str());
        let Some(owner) = entry.event.log() else { return Err(about(entry.event.kind())) };
        if owner != self.fingerprint {
            return Err(format!("entry {seq} is of another log, {owner:?}"));
        }
        match (&entry.about, &entry.event) {
            (Subject::Thread(thread), Event::LogThread(e)) => {
                if self.threads.get(thread).is_some_and(|before| before.entries >= e.entries) {
                    return Err(contradiction());
                }
                self.threads.insert(thread.clone(), e.clone());
                self.told.entry(thread.clone()).or_default().push(e.clone());
            }
            (Subject::Run(run), Event::LogSubmitted(e)) => {
                let said = self.runs.entry(run.clone()).or_default();
                if said.sealed.is_some() || said.first.is_some_and(|first| first != e.first) {
                    return Err(contradiction());
                }
                said.first = Some(e.first);
                said.records.extend(Record::of(entry).map(|record| record.canonical()));
            }
            (Subject::Run(run), Event::LogSealed(e)) => {
                let said = self.runs.entry(run.clone()).or_default();
                if said.sealed.as_ref().is_some_and(|sealed| sealed != e) {
                    return Err(contradiction());
                }
                said.sealed = Some(e.clone());
                said.records.extend(Record::of(entry).map(|record| record.canonical()));
            }
            // What it decided and wrote for others' runs, whoever conducts them takes in.
            (Subject::Run(_), Event::LogDecided(_) | Event::LogWritten(_)) => {}
            (_, other) => return Err(about(other.kind())),
        }
        Ok(())
    }
}

/// A log being read, from its first entry on.
#[derive(Default)]
struct Reading<'a> {
    lazy: bool,
    /// The last sound entry.
    last: Option<&'a Link>,
    /// The blobs of the tree after it.
    tree: HashMap<String, Oid>,
    /// The leaf hashes of all sound entries.
    hashes: Vec<Digest>,
    /// Why trees are not looked at any more: one is not here, in a repository that leaves things out.
    unread: Option<String>,
}

impl<'a> Reading<'a> {
    /// Reads on as long as entries are sound; says what is wrong with the first that is not.
    fn take(&mut self, store: &Store, commits: &'a [Commit], log: &mut Log) -> Result<(), String> {
        for batch in commits.chunks(BATCH) {
            let mut links: Vec<&Link> = Vec::new();
            let mut wrong = Ok(());
            for commit in batch {
                let before = links.last().copied().or(self.last);
                let read = commit.as_deref().map_err(Clone::clone);
                match read.and_then(|link| follows(link, before, &log.fingerprint).map(|()| link)) {
                    Ok(link) => links.push(link),
                    Err(why) => {
                        wrong = Err(why);
                        break;
                    }
                }
            }
            let changes = |objects: &Objects, link: &Link| {
                let accounted = Accounted::by(&link.entry, Layout { fan_out: false }, objects);
                (tree::changes(objects, link.before, link.tree, &accounted), accounted)
            };
            let room = Room::default();
            let changed = each(store, &links, |objects, link| {
                room.left().then(|| {
                    let (changes, accounted) = changes(objects, link);
                    (room.take(changes), accounted)
                })
            });
            let objects = Objects::new(store);
            for (link, changed) in links.into_iter().zip(changed) {
                let (changes, accounted) = changed.unwrap_or_else(|| changes(&objects, link));
                self.fold(link.entry.seq, changes, &accounted)?;
                log.hear(&link.entry)?;
                self.hashes.push(link.hash);
                self.last = Some(link);
            }
            wrong?;
        }
        Ok(())
    }

    /// Makes sure that an entry changed in the tree what it says, and nothing else.
    fn fold(&mut self, seq: u64, changes: Changes, accounted: &Accounted) -> Result<(), String> {
        for (_, fault) in &changes.faults {
            match fault {
                Fault::Missing(_) if self.lazy => self.unread = Some(fault.to_string()),
                fault => return Err(format!("entry {seq}: {fault}")),
            }
        }
        if let Some(problem) = changes.problems.shown.first() {
            return Err(format!("entry {seq} does not account for the change of {problem} in the tree"));
        }
        self.tree.extend(changes.paths.into_iter().filter_map(|(path, blob)| Some((path, blob?))));
        let mut wanted = accounted.set.iter().filter(|_| self.unread.is_none());
        match wanted.find(|(path, wanted)| self.tree.get(*path) != wanted.as_ref()) {
            Some((path, _)) => Err(format!("entry {seq}: the tree does not hold at {path} what the entry says")),
            None => Ok(()),
        }
    }
}

/// Makes sure that an entry is signed by the log's own key and goes on from the one before.
fn follows(link: &Link, before: Option<&Link>, owner: &str) -> Result<(), String> {
    let key = Signed::of(link).key()?;
    if let Some((_, fault)) = order::faults(link, before, Parents::Counted).next() {
        return Err(fault);
    }
    Writers::of(owner).refuses(&Signed::of(link), key, None).map_or(Ok(()), |(_, why)| Err(why))
}
