//! Statements of a log about runs and threads.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::entry::Subject;
use super::format;

/// The fields of `log.recorded`: the chain that begins with `first` has the leaf `last` at
/// `lastSeq`.
///
/// A writer also stores its [`Indexed`] form in the log's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogRecorded {
    /// The fingerprint of the log's key.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub log: String,
    /// The leaf hash of entry 0.
    pub first: Digest,
    /// The position of an entry.
    pub last_seq: u64,
    /// The leaf hash of that entry.
    pub last: Digest,
    /// The root in that entry, if it is the seal of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
}

impl LogRecorded {
    /// Returns the statement that a chain has an entry, which is not the seal of a run.
    pub fn new(log: String, first: Digest, last_seq: u64, last: Digest) -> Self {
        Self { log, first, last_seq, last, root: None }
    }

    /// Returns the statement that a chain begins with an entry.
    pub fn begin(log: String, first: Digest) -> Self {
        Self::new(log, first, 0, first)
    }

    /// Returns true if a log may state this after its last statement about the same run or thread.
    pub fn may_follow(&self, about: &Subject, before: Option<&Self>) -> bool {
        let is_begin = self.last_seq == 0;
        let is_of_form =
            (!is_begin || self.last == self.first) && self.root.is_some() == (!is_begin && about.run().is_some());
        is_of_form
            && before
                .is_none_or(|before| self == before || (self.last_seq > before.last_seq && !self.contradicts(before)))
    }

    /// Returns true if no chain fits both statements.
    pub fn contradicts(&self, other: &Self) -> bool {
        let (one, later) = if self.last_seq <= other.last_seq { (self, other) } else { (other, self) };
        one.first != later.first || if one.last_seq == later.last_seq { one != later } else { one.root.is_some() }
    }

    /// Returns true if a log with this statement needs no other statement about the chain.
    pub fn covers(&self, other: &Self) -> bool {
        covers(self.root, self.last_seq, other)
    }

    /// Returns true if the other statement follows from this one.
    pub fn implies(&self, other: &Self) -> bool {
        self == other || (other.last_seq == 0 && self.first == other.first)
    }

    /// Returns the index of this statement about a run or thread.
    pub fn index(&self, about: &Subject) -> Indexed {
        let first = about.run().is_some().then_some(self.first);
        Indexed { first, last_seq: self.last_seq, last: self.last, root: self.root }
    }
}

/// The latest statement of a log about a run or thread, in the log's tree at [`path`]: an index for
/// writers. It repeats neither the log's key nor what a thread's checkpoints have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Indexed {
    /// The leaf hash of entry 0 of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Digest>,
    /// The position of an entry.
    pub last_seq: u64,
    /// The leaf hash of that entry.
    pub last: Digest,
    /// The root in that entry, if it is the seal of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
}

impl Indexed {
    /// Returns the statement about a run, in the log of this key.
    pub fn about_run(self, log: String) -> Option<LogRecorded> {
        let Self { first, last_seq, last, root } = self;
        first.map(|first| LogRecorded { root, ..LogRecorded::new(log, first, last_seq, last) })
    }

    /// Returns true if a log with this statement needs no other statement about the chain.
    pub fn covers(&self, other: &LogRecorded) -> bool {
        covers(self.root, self.last_seq, other)
    }

    /// Returns the bytes in the log's tree.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(&serde_json::to_value(self).expect("the fields serialise to an object"))
    }
}

/// Returns true if a statement with this root and position covers another one.
fn covers(root: Option<Digest>, last_seq: u64, other: &LogRecorded) -> bool {
    root.is_some() || last_seq >= other.last_seq
}

/// Returns the path of the index of a run or thread in a log's tree; an archive has none.
pub fn path(about: &Subject) -> Option<String> {
    match about {
        Subject::Run(run) => Some(format::log_path(run)),
        Subject::Thread(thread) => Some(format::log_thread_path(thread)),
        Subject::Archive(_) => None,
    }
}
