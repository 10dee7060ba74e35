//! Statements of a log about runs and threads.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::digest::Digest;
use super::entry::Subject;
use super::format;

/// The fields of `log.recorded`: the chain that begins with `first` has the leaf `last` at
/// `lastSeq`.
///
/// A writer also stores all but `log` as its index in the log's tree, at [`path`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LogRecorded {
    /// The fingerprint of the log's key.
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
    /// Returns the statement that a chain begins with an entry.
    pub fn begin(log: String, first: Digest) -> Self {
        Self { log, first, last_seq: 0, last: first, root: None }
    }

    /// Returns true if a log may state this after its last statement about the same run or thread.
    pub fn may_follow(&self, about: &Subject, before: Option<&Self>) -> bool {
        let is_begin = self.last_seq == 0;
        let is_of_form =
            (!is_begin || self.last == self.first) && self.root.is_some() == (!is_begin && about.run().is_some());
        let fits = |before: &Self| self == before || (self.last_seq > before.last_seq && !self.contradicts(before));
        is_of_form && before.is_none_or(fits)
    }

    /// Returns true if no chain fits both statements.
    pub fn contradicts(&self, other: &Self) -> bool {
        let (one, later) = if self.last_seq <= other.last_seq { (self, other) } else { (other, self) };
        one.first != later.first || if one.last_seq == later.last_seq { one != later } else { one.root.is_some() }
    }

    /// Returns true if a log with this statement needs no other statement about the chain.
    pub fn covers(&self, other: &Self) -> bool {
        self.root.is_some() || self.last_seq >= other.last_seq
    }

    /// Returns true if the other statement follows from this one.
    pub fn implies(&self, other: &Self) -> bool {
        self == other || (other.last_seq == 0 && self.first == other.first)
    }

    /// Returns the bytes in the log's tree.
    pub fn to_index(&self) -> Vec<u8> {
        let mut fields = serde_json::to_value(self).expect("the fields serialise to an object");
        fields.as_object_mut().expect("it is an object").remove("log");
        format::canonical(&fields)
    }

    /// Reads bytes of the tree of the log of this key.
    pub fn from_index(bytes: &[u8], log: &str) -> Result<Self, serde_json::Error> {
        let mut fields: Map<String, Value> = serde_json::from_slice(bytes)?;
        fields.insert("log".into(), log.into());
        serde_json::from_value(fields.into())
    }
}

/// Returns the path of the index of a run or thread in a log's tree; an archive has none.
pub fn path(about: &Subject) -> Option<String> {
    match about {
        Subject::Run(run) => Some(format::log_path(run)),
        Subject::Thread(thread) => Some(format::log_thread_path(thread)),
        Subject::Archive(_) => None,
    }
}
