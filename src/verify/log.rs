//! One repository log, as far as it is sound.
//!
//! A process with write access to the ref can append anything, but cannot sign with the log's key.
//! So a log is read from its first entry. Entries before the first unsound one remain valid
//! statements of the key, and the log is reported as broken. The trees of a log are not read: its
//! writer keeps an index there.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event, LogRecorded, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};

use super::entry_order::{self, Parents};
use super::objects::Fault;
use super::reader::{Commit, Extent, Link, Stop, Walk, Walked};
use super::signature::{Signed, Writers};

/// The longest history that is read. No log comes near it.
const MAX_COMMITS: usize = 1 << 22;

pub(super) struct Log {
    pub(super) name: String,
    /// The fingerprint of its key; empty if its name holds none.
    pub(super) fingerprint: String,
    /// The reason why the log is broken. The entries before the fault count.
    pub(super) broken: Option<String>,
    /// The reason why the log could not be read, in a shallow clone.
    pub(super) unread: Option<String>,
    /// The last statement about each run: it has a root if the run was sealed.
    pub(super) runs: BTreeMap<RunId, LogRecorded>,
    /// The last statement about each thread.
    pub(super) threads: BTreeMap<ThreadId, LogRecorded>,
    /// All signed statements about each thread, oldest first, including those after a fault.
    pub(super) thread_history: BTreeMap<ThreadId, Vec<LogRecorded>>,
    /// True if the log is in another repository than the runs, and so beside none of them.
    pub(super) elsewhere: bool,
}

impl Log {
    /// Reads the log at a ref; `lazy` is true in a partial or shallow clone.
    pub(super) fn read(store: &Store, name: String, tip: Oid, lazy: bool) -> Self {
        let mut log = Self { broken: None, ..Self::unreadable(name, String::new()) };
        let Walked { commits, stop, .. } =
            Walk::new(Extent::ToRoot { max_non_entries: MAX_COMMITS, max_commits: MAX_COMMITS }).read(store, tip);
        match stop {
            None => log.add_entries(&commits),
            Some(Stop::Fault(fault @ Fault::Missing(_))) if lazy => log.unread = Some(fault.to_string()),
            Some(Stop::Fault(fault)) => {
                log.broken = Some(format!("it could not be read to its first entry: {fault}"));
            }
            Some(stop) => log.broken = Some(stop.to_string()),
        }
        log
    }

    pub(super) fn unreadable(name: String, why: String) -> Self {
        let log_name = LogName::decode(name.rsplit('/').next().unwrap_or_default());
        let fingerprint = log_name.map_or_else(String::new, |log_name| log_name.key().to_owned());
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
        !self.elsewhere && folder_of(&self.name) == folder_of(reference)
    }

    /// Adds the entries while they are sound.
    fn add_entries(&mut self, commits: &[Commit]) {
        let mut sound: Vec<&Link> = Vec::new();
        let mut wrong = None;
        for commit in commits {
            let before = sound.last().copied();
            let read = commit.as_deref().map_err(Clone::clone);
            let added = read.and_then(|link| {
                follows(link, before, &self.fingerprint)?;
                self.add_entry(&link.entry).map(|()| link)
            });
            match added {
                Ok(link) => sound.push(link),
                Err(why) => {
                    wrong = Some(why);
                    break;
                }
            }
        }
        self.add_unsound_thread_entries(&commits[sound.len()..]);
        let log_name = LogName::decode(self.name.rsplit('/').next().unwrap_or_default());
        let hashes = sound.iter().map(|link| link.hash);
        self.broken = match (wrong, sound.last()) {
            (Some(why), Some(last)) => Some(format!("{why}; its statements up to entry {} count", last.entry.seq)),
            (None, _) if log_name.is_some_and(|log_name| !log_name.fits(hashes)) => {
                Some("it does not contain the entry in its name".to_owned())
            }
            (wrong, _) => wrong,
        };
    }

    /// Adds the statements about threads in commits after a fault. Each signed entry is evidence by
    /// itself.
    fn add_unsound_thread_entries(&mut self, commits: &[Commit]) {
        for link in commits.iter().flatten().filter(|link| link.signer.as_deref() == Ok(self.fingerprint.as_str())) {
            if let (Subject::Thread(thread), Event::LogRecorded(recorded)) = (&link.entry.about, &link.entry.event) {
                self.thread_history.entry(thread.clone()).or_default().push(recorded.clone());
            }
        }
    }

    /// Adds the statement of a sound entry. Rejects an entry that does not belong in a log, or that
    /// contradicts an earlier one.
    fn add_entry(&mut self, entry: &Entry) -> Result<(), String> {
        let Entry { seq, about, event, .. } = entry;
        let Some(owner) = event.log() else {
            return Err(format!("entry {seq} is {}, which has no place in a log", event.kind()));
        };
        if owner != self.fingerprint {
            return Err(format!("entry {seq} is of another log, {owner:?}"));
        }
        // The writer of that run records the other kinds.
        let Event::LogRecorded(recorded) = event else { return Ok(()) };
        let before = match about {
            Subject::Thread(thread) => self.threads.get(thread),
            about => about.run().and_then(|run| self.runs.get(run)),
        };
        if !recorded.may_follow(about, before) {
            return Err(format!("entry {seq} contradicts an earlier entry about {}", about.as_str()));
        }
        match about {
            Subject::Run(run) => _ = self.runs.insert(run.clone(), recorded.clone()),
            Subject::Thread(thread) => {
                self.threads.insert(thread.clone(), recorded.clone());
                self.thread_history.entry(thread.clone()).or_default().push(recorded.clone());
            }
            Subject::Archive(_) => {}
        }
        Ok(())
    }
}

fn folder_of(name: &str) -> Option<String> {
    name.rmatch_indices('/').nth(1).map(|(at, _)| name[..at].to_owned())
}

/// Checks that an entry is signed by the log's key and follows the one before.
fn follows(link: &Link, before: Option<&Link>, owner: &str) -> Result<(), String> {
    let key = Signed::from_link(link).key()?;
    if let Some(fault) = entry_order::faults(link, before, Parents::Counted).next() {
        return Err(fault);
    }
    Writers::Owner(owner).refuse(&Signed::from_link(link), key, None).map_or(Ok(()), |(_, why)| Err(why))
}
