//! One repository log, as far as it is sound.
//!
//! A process with write access to the ref can append anything, but cannot sign with the log's key.
//! So a log is read from its first entry. Entries before the first unsound one remain valid
//! statements of the key, and the log is reported as broken.

use std::collections::BTreeMap;

use gix::objs::Kind;

use crate::git::store::Store;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, LogSealed, LogThread, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::log_record::Record;
use crate::model::name::{RunId, ThreadId};

use super::entry_order::{self, Parents};
use super::objects::{Fault, Objects};
use super::reader::{Commit, Extent, Link, Stop, Walk, Walked};
use super::signature::{Signed, Writers};

/// The number of entries whose trees are compared at once.
const BATCH: usize = 4096;

/// The longest history that is read. No log comes near it.
const MAX_COMMITS: usize = 1 << 22;

pub(super) struct Log {
    pub(super) name: String,
    /// The fingerprint of its key; empty if its name holds none.
    pub(super) fingerprint: String,
    /// The reason why the log is broken. The entries before the fault count.
    pub(super) broken: Option<String>,
    /// The reason why the log could not be read, in a partial or shallow clone.
    pub(super) unread: Option<String>,
    pub(super) runs: BTreeMap<RunId, LoggedRun>,
    pub(super) threads: BTreeMap<ThreadId, LogThread>,
    /// All signed statements about each thread, oldest first, including those after a fault.
    pub(super) thread_history: BTreeMap<ThreadId, Vec<LogThread>>,
    /// True if the log is in another repository than the runs, and so beside none of them.
    pub(super) elsewhere: bool,
}

#[derive(Default)]
pub(super) struct LoggedRun {
    /// The leaf hash of the run's entry 0.
    pub(super) first: Option<Digest>,
    pub(super) sealed: Option<LogSealed>,
    /// The records of the run in the log's tree, after each entry about it.
    records: Vec<Vec<u8>>,
}

pub(super) enum RecordFault {
    /// A record is damaged, or missing from a complete repository.
    Damaged(String),
    /// A record is missing from a partial or shallow clone. Such a log can contradict, but holds
    /// nothing.
    Absent(String),
}

impl Log {
    /// Reads the log at a ref; `lazy` is true in a partial or shallow clone.
    pub(super) fn read(store: &Store, name: String, tip: Oid, lazy: bool) -> Self {
        let mut log = Self { broken: None, ..Self::unreadable(name, String::new()) };
        let mut reading = Reading::default();
        let Walked { commits, stop, .. } =
            Walk::new(Extent::ToRoot { max_non_entries: MAX_COMMITS, max_commits: MAX_COMMITS }).read(store, tip);
        let wrong = match stop {
            None => reading.take(&commits, &mut log).err(),
            Some(Stop::Fault(fault @ Fault::Missing(_))) if lazy => {
                log.unread = Some(fault.to_string());
                return log;
            }
            Some(Stop::Fault(fault)) => Some(format!("it could not be read to its first entry: {fault}")),
            Some(stop) => Some(stop.to_string()),
        };
        log.add_unsound_thread_entries(&commits[reading.hashes.len()..]);
        let named = LogName::decode(log.name.rsplit('/').next().unwrap_or_default());
        let misnamed = !named.is_none_or(|named| named.fits(reading.hashes.into_iter()));
        log.broken = match (wrong, reading.last) {
            (Some(why), Some(last)) => Some(format!("{why}; its statements up to entry {} count", last.entry.seq)),
            (None, _) if misnamed => Some("it does not contain the entry in its name".to_owned()),
            (wrong, _) => wrong,
        };
        log
    }

    pub(super) fn unreadable(name: String, why: String) -> Self {
        let named = LogName::decode(name.rsplit('/').next().unwrap_or_default());
        let fingerprint = named.map_or_else(String::new, |named| named.key().to_owned());
        let (runs, threads, thread_history) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { name, fingerprint, broken: Some(why), unread: None, runs, threads, thread_history, elsewhere: false }
    }

    /// Returns true if the log belongs to this repository.
    pub(super) fn is_own(&self) -> bool {
        self.name.starts_with(format::LOG_REFS)
    }

    /// Returns the fault of a broken log, with its name.
    pub(super) fn complaint(&self) -> Option<String> {
        self.broken.as_ref().map(|why| format!("{} is broken: {why}", self.name))
    }

    /// Returns true if the log lies beside the ref of a run or thread: both belong to this
    /// repository, or to one remote.
    pub(super) fn lies_beside(&self, reference: &str) -> bool {
        let folder = |name: &str| name.rmatch_indices('/').nth(1).map(|(at, _)| name[..at].to_owned());
        !self.elsewhere && folder(&self.name) == folder(reference)
    }

    /// Returns a fault in the records of a run.
    ///
    /// The entries determine the records, so their ids are known. Reading them only detects damage.
    pub(super) fn record_fault(&self, objects: &Objects, run: &RunId, lazy: bool) -> Option<RecordFault> {
        // The records of a log from elsewhere are elsewhere, too.
        let logged = self.runs.get(run).filter(|_| !self.elsewhere);
        let records = logged.into_iter().flat_map(|logged| &logged.records);
        let read = records.filter_map(|bytes| objects.read(objects.hash(Kind::Blob, bytes)?, Kind::Blob).err());
        let faults: Vec<Fault> = read.collect();
        let is_absent = |fault: &&Fault| lazy && matches!(fault, Fault::Missing(_));
        let damaged = faults.iter().find(|fault| !is_absent(fault));
        let damaged = damaged.map(|fault| RecordFault::Damaged(format!("{} is broken: {fault}", self.name)));
        damaged.or_else(|| faults.first().map(|fault| RecordFault::Absent(fault.to_string())))
    }

    /// Adds the statements about threads in commits after a fault. Each signed entry is evidence by
    /// itself.
    fn add_unsound_thread_entries(&mut self, commits: &[Commit]) {
        for link in commits.iter().flatten().filter(|link| link.signer.as_deref() == Ok(self.fingerprint.as_str())) {
            if let (Subject::Thread(thread), Event::LogThread(statement)) = (&link.entry.about, &link.entry.event) {
                self.thread_history.entry(thread.clone()).or_default().push(statement.clone());
            }
        }
    }

    /// Adds the statement of a sound entry. Rejects an entry that does not belong in a log, or that
    /// contradicts an earlier one.
    fn add_entry(&mut self, entry: &Entry) -> Result<(), String> {
        let seq = entry.seq;
        let about = |kind: &str| format!("entry {seq} is {kind}, which has no place in a log");
        let contradiction = || format!("entry {seq} contradicts an earlier entry about {}", entry.about.as_str());
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
                self.thread_history.entry(thread.clone()).or_default().push(e.clone());
            }
            (Subject::Run(run), Event::LogSubmitted(e)) => {
                let logged = self.runs.entry(run.clone()).or_default();
                if logged.sealed.is_some() || logged.first.is_some_and(|first| first != e.first) {
                    return Err(contradiction());
                }
                logged.first = Some(e.first);
                logged.records.extend(Record::of(entry).map(|record| record.canonical()));
            }
            (Subject::Run(run), Event::LogSealed(e)) => {
                let logged = self.runs.entry(run.clone()).or_default();
                if logged.sealed.as_ref().is_some_and(|sealed| sealed != e) {
                    return Err(contradiction());
                }
                logged.sealed = Some(e.clone());
                logged.records.extend(Record::of(entry).map(|record| record.canonical()));
            }
            // The writer of that run records these.
            (Subject::Run(_), Event::LogDecided(_) | Event::LogWritten(_)) => {}
            (_, other) => return Err(about(other.kind())),
        }
        Ok(())
    }
}

/// The state while a log is read from its first entry.
#[derive(Default)]
struct Reading<'a> {
    last: Option<&'a Link>,
    hashes: Vec<Digest>,
}

impl<'a> Reading<'a> {
    /// Reads entries while they are sound; returns the fault of the first that is not.
    fn take(&mut self, commits: &'a [Commit], log: &mut Log) -> Result<(), String> {
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
            for link in links {
                log.add_entry(&link.entry)?;
                self.hashes.push(link.hash);
                self.last = Some(link);
            }
            wrong?;
        }
        Ok(())
    }
}

/// Checks that an entry is signed by the log's key and follows the one before.
fn follows(link: &Link, before: Option<&Link>, owner: &str) -> Result<(), String> {
    let key = Signed::of(link).key()?;
    if let Some(fault) = entry_order::faults(link, before, Parents::Counted).next() {
        return Err(fault);
    }
    Writers::Owner(owner).refuse(&Signed::of(link), key, None).map_or(Ok(()), |(_, why)| Err(why))
}
