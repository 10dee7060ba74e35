//! A log's record of a run or thread, in the log's tree.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::digest::{Digest, Oid};
use super::entry::{Entry, Event, LogSealed, LogSubmitted, LogThread, Subject};
use super::format;
use super::name::{RunId, ThreadId};

/// The latest statement of a log about a run or thread, without the log's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A run was submitted.
    Submitted {
        /// The run.
        run: RunId,
        /// The leaf hash of its entry 0.
        first: Digest,
    },
    /// A run was sealed.
    Sealed {
        /// The run.
        run: RunId,
        /// The root in its seal.
        root: Digest,
        /// The number of entries under the root.
        entries: u64,
        /// The leaf hash of the seal entry.
        seal: Digest,
        /// The commit of the seal entry.
        commit: Oid,
    },
    /// The length of a thread.
    Thread {
        /// The thread.
        thread: ThreadId,
        /// The number of its entries.
        entries: u64,
        /// The leaf hash of the last entry.
        last: Digest,
    },
}

impl Record {
    /// Returns the record of an entry, or `None` for one that is not in a log.
    pub fn of(entry: &Entry) -> Option<Self> {
        Self::of_event(&entry.about, &entry.event)
    }

    /// Returns the record of an event of a log, or `None` for others.
    pub fn of_event(about: &Subject, event: &Event) -> Option<Self> {
        match (about, event) {
            (Subject::Run(run), Event::LogSubmitted(e)) => Some(Self::Submitted { run: run.clone(), first: e.first }),
            (Subject::Run(run), Event::LogSealed(e)) => {
                let LogSealed { root, entries, seal, commit, .. } = *e;
                Some(Self::Sealed { run: run.clone(), root, entries, seal, commit })
            }
            (Subject::Thread(thread), Event::LogThread(e)) => {
                Some(Self::Thread { thread: thread.clone(), entries: e.entries, last: e.last })
            }
            _ => None,
        }
    }

    /// Returns the event with this record in a key's log.
    pub fn event(&self, log: String) -> Event {
        match *self {
            Self::Submitted { first, .. } => Event::LogSubmitted(LogSubmitted { log, first }),
            Self::Sealed { root, entries, seal, commit, .. } => {
                Event::LogSealed(LogSealed { log, root, entries, seal, commit })
            }
            Self::Thread { entries, last, .. } => Event::LogThread(LogThread { log, entries, last }),
        }
    }

    /// Returns the subject.
    pub fn about(&self) -> Subject {
        match self {
            Self::Submitted { run, .. } | Self::Sealed { run, .. } => run.clone().into(),
            Self::Thread { thread, .. } => thread.clone().into(),
        }
    }

    /// Returns the bytes in the log's tree.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(&match self {
            Self::Submitted { run, first } => json!({ "run": run, "first": first }),
            Self::Sealed { run, root, entries, seal, commit } => {
                json!({ "run": run, "root": root, "entries": entries, "seal": seal, "commit": commit })
            }
            Self::Thread { thread, entries, last } => json!({ "thread": thread, "entries": entries, "last": last }),
        })
    }

    /// Parses the bytes, or returns `None`. Each kind has a distinct field.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
        let of = &mut fields;
        let record = if of.contains_key("thread") {
            Self::Thread { thread: take(of, "thread")?, entries: take(of, "entries")?, last: take(of, "last")? }
        } else if of.contains_key("root") {
            let (root, seal, commit) = (take(of, "root")?, take(of, "seal")?, take(of, "commit")?);
            Self::Sealed { run: take(of, "run")?, root, entries: take(of, "entries")?, seal, commit }
        } else {
            Self::Submitted { run: take(of, "run")?, first: take(of, "first")? }
        };
        fields.is_empty().then_some(record)
    }

    /// Returns true if another record of the same run or thread adds nothing to this one.
    ///
    /// A run is sealed once, and a thread only grows.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sealed { .. }, Self::Submitted { .. } | Self::Sealed { .. }) => true,
            (Self::Thread { entries, .. }, Self::Thread { entries: others, .. }) => entries >= others,
            _ => self == other,
        }
    }
}

fn take<T: DeserializeOwned>(fields: &mut Map<String, Value>, name: &str) -> Option<T> {
    serde_json::from_value(fields.remove(name)?).ok()
}

/// Returns the path of a subject's record in a log's tree; an archive has none.
pub fn path(about: &Subject) -> Option<String> {
    match about {
        Subject::Run(run) => Some(format::log_path(run)),
        Subject::Thread(thread) => Some(format::log_thread_path(thread)),
        Subject::Archive(_) => None,
    }
}
