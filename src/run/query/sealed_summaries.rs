//! The summaries of sealed runs, kept in a file, so that a list does not read their chains again.
//!
//! Nothing can follow a seal, so its commit determines the summary.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::git::private_files::{self, LISTS};
use crate::git::refs;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format;

use super::list::{RunSummary, summary};
use super::target::Target;

/// The name of the file.
const RUNS: &str = "runs";

/// The most bytes of the file.
const LARGEST: u64 = 64 << 20;

/// The most summaries in a valid file.
const MOST: usize = 20_000;

/// The summaries by the commit of the seal.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedSummaries {
    /// The version that wrote them. Another one may say other things of a run.
    tool: String,
    runs: BTreeMap<Oid, RunSummary>,
    /// True if some are not in the file yet.
    #[serde(skip)]
    grown: bool,
}

impl SealedSummaries {
    /// Reads the file, or begins without any if it is missing, invalid or of another version.
    pub(super) fn read(store: &Store) -> Self {
        let bytes = private_files::read(&private_files::path(store, LISTS, RUNS), LARGEST).ok();
        let summaries = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        summaries.filter(|all| all.tool == format::TOOL && all.runs.len() <= MOST).unwrap_or_else(|| Self {
            tool: format::TOOL.to_owned(),
            runs: BTreeMap::new(),
            grown: false,
        })
    }

    /// Returns the summary of a run.
    pub(super) fn summary(&mut self, store: &Store, target: &Target) -> RunSummary {
        let tip = refs::read(store, &target.reference).ok().flatten();
        if let Some(known) = tip.and_then(|tip| self.runs.get(&tip)).filter(|known| known.run == target.run) {
            return RunSummary { remote: target.remote(), ..known.clone() };
        }
        let (found, head) = summary(store, target);
        if let Some(seal) = head.filter(|_| found.sealed) {
            self.runs.insert(seal, found.clone());
            self.grown = true;
        }
        found
    }

    /// Writes the file if there are new ones. A list needs no file: if it cannot be written, chains
    /// are read again.
    pub(super) fn keep(self, store: &Store) {
        if self.grown
            && let Ok(bytes) = serde_json::to_vec(&self)
        {
            drop(private_files::put(store, LISTS, RUNS, &bytes));
        }
    }
}
