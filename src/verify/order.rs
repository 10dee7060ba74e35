//! What an entry must be after the one before it, in whatever chain.

use crate::model::digest::Digest;
use crate::model::entry::Entry;
use crate::model::time::Moment;

/// What the next entry of a chain goes on from.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) seq: u64,
    at: Moment,
    hash: Digest,
}

impl End {
    /// Returns the end that an entry of this leaf hash makes.
    pub(super) fn of(entry: &Entry, hash: Digest) -> Self {
        Self { seq: entry.seq, at: entry.at, hash }
    }
}

/// Returns what is wrong with the place of an entry: its number, its link, its parents where `parents` says so, its time.
pub(super) fn faults(entry: &Entry, before: Option<End>, parents: Option<String>) -> impl Iterator<Item = String> {
    let seq = entry.seq;
    let due = before.map_or(0, |before| before.seq.saturating_add(1));
    let number = (seq != due).then(|| format!("entry {seq} stands where entry {due} belongs"));
    let link = (entry.prev != before.map(|before| before.hash))
        .then(|| format!("entry {seq} does not name the hash of the entry before it"));
    let time = before
        .is_some_and(|before| entry.at < before.at)
        .then(|| format!("entry {seq} is dated before the entry before it"));
    [number, link, parents, time].into_iter().flatten()
}

/// Returns what is wrong with the number of parents in a chain whose entries have no other than the entry before.
pub(super) fn parents(entry: &Entry, before: Option<End>, count: usize) -> Option<String> {
    (count != usize::from(before.is_some())).then(|| format!("entry {} has {count} parents", entry.seq))
}
