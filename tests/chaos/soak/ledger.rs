//! Acknowledged operations, and what happened in the meantime.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::workers::Fate;

/// How many of the last commands a failure prints.
const TOLD: usize = 40;

/// A run whose submission was attempted.
pub(super) struct Submitted {
    pub(super) fates: BTreeMap<String, Fate>,
    /// Whether the submit reported it.
    pub(super) acknowledged: bool,
    /// Whether it was driven while a disk was full or a limit stood, which may cost an item its
    /// attempts.
    pub(super) troubled: bool,
    /// Whether it was seen to be sealed.
    pub(super) sealed: bool,
    /// How many revisions of its document were acknowledged, and how many may be there at most.
    pub(super) documents: (u64, u64),
}

/// Everything that is to be true in the end.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) runs: BTreeMap<String, Submitted>,
    /// Checkpoints that were acknowledged: the clone, the thread, the name.
    pub(super) checkpoints: Vec<(&'static str, String, String)>,
    /// Threads whose adoption was acknowledged, in the second clone.
    pub(super) adopted: Vec<String>,
    counts: BTreeMap<&'static str, BTreeMap<String, u64>>,
    last: VecDeque<String>,
}

impl Ledger {
    pub(super) fn count(&mut self, kind: &'static str, what: impl Into<String>) {
        *self.counts.entry(kind).or_default().entry(what.into()).or_default() += 1;
    }

    pub(super) fn tell(&mut self, line: String) {
        if self.last.len() == TOLD {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    pub(super) fn last(&self) -> String {
        self.last.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    /// The runs that are not known to be sealed.
    pub(super) fn open(&self) -> Vec<String> {
        self.runs.iter().filter(|(_, run)| run.acknowledged && !run.sealed).map(|(name, _)| name.clone()).collect()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, counts) in &self.counts {
            let all: u64 = counts.values().sum();
            let each: Vec<String> = counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
            writeln!(f, "{kind}: {all} ({})", each.join(", "))?;
        }
        Ok(())
    }
}
