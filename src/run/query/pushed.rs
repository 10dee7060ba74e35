//! The remotes that a run of this repository was pushed to, as a private file remembers them.

use std::io;

use serde::{Deserialize, Serialize};

use crate::git::private_files;
use crate::git::store::Store;
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::time::Moment;

use super::sharing::LastDriver;

/// The most bytes of such a file.
const LARGEST: u64 = 64 << 10;

/// The remotes that a run was pushed to, or is driven through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pushed {
    /// The leaf hash of entry 0.
    pub first: Digest,
    /// The remotes, as they were named. The run is driven through the first, if it is shared.
    pub remotes: Vec<String>,
    /// When a remote was last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Moment>,
    /// The last driver of this repository that drove the run alone and left its beat there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<LastDriver>,
}

impl Pushed {
    /// Reads the record of a run, or returns `None`.
    pub fn read(store: &Store, run: &RunId) -> Option<Self> {
        let path = private_files::path(store, private_files::PUSHED, &run.encoded());
        serde_json::from_slice(&private_files::read(&path, LARGEST).ok()?).ok()
    }

    /// Reads the record of a run that begins with an entry, or returns an empty one.
    pub fn load(store: &Store, run: &RunId, first: Digest) -> Self {
        Self::read(store, run).filter(|known| known.first == first).unwrap_or_else(|| Self {
            first,
            remotes: Vec::new(),
            read_at: None,
            alone: None,
        })
    }

    /// Replaces the record.
    pub fn keep(&self, store: &Store, run: &RunId) -> io::Result<()> {
        private_files::put(store, private_files::PUSHED, &run.encoded(), &format::canonical(self))
    }

    /// Adds a remote that the run was pushed to.
    pub fn note_push(&mut self, remote: &str, at: Option<Moment>) {
        if !self.remotes.iter().any(|known| known == remote) {
            self.remotes.push(remote.to_owned());
        }
        self.read_at = at.or(self.read_at);
    }

    /// Puts a remote in front of the others.
    pub fn prefer(&mut self, remote: &str) {
        self.remotes.retain(|known| known != remote);
        self.remotes.insert(0, remote.to_owned());
    }
}
