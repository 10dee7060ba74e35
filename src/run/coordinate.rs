//! The coordinator: applies the rules of a run to the documents that it holds, and records the items that they create.
//!
//! It holds no state and judges nothing itself. What it does follows from the chain alone, so that any number of coordinators
//! on any number of machines, restarted at any moment, create each item exactly once: an item is named after its rule and
//! what the rule saw, and it is recorded by a compare-and-swap against just the state in which that was so.

use crate::git::store::{self, Store};
use crate::ledger::chain::Link;
use crate::model::digest::Digest;
use crate::model::document::Revision;
use crate::model::entry::Cause;
use crate::model::judge::{self, Judgement};
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::plan::Item;
use crate::model::state::RunState;
use crate::run::{self, NewEntry, OpenRun};

/// An item that a rule creates, with that rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The rule.
    pub rule: ItemId,
    /// The item.
    pub item: Item,
}

/// Returns what the rules of a run create as it stands, in the order of the rules.
pub fn due(store: &Store, state: &RunState) -> Result<Vec<Due>, Error> {
    let mut due = Vec::new();
    if state.sealed || state.is_ended() {
        return Ok(due);
    }
    for rule in &state.rules {
        let item = judge::creates(state, rule, |name, revision| read(store, name, revision))?;
        due.extend(item.map(|item| Due { rule: rule.id().clone(), item }));
    }
    Ok(due)
}

/// Returns for every rule of a run what it comes to as the run stands, and why.
pub fn explain(store: &Store, state: &RunState) -> Result<Vec<Judgement>, Error> {
    let judged = state.rules.iter().map(|rule| judge::judge(state, rule, |name, revision| read(store, name, revision)));
    judged.collect()
}

/// Records what the rules create, and returns the entries; none where they create nothing.
///
/// Whoever appends first is taken in, and the rules are looked at anew: what is recorded follows from exactly the state before
/// it. A run of `max_items` items does not grow.
pub fn apply(run: &mut OpenRun, max_items: usize) -> Result<Vec<Link>, Error> {
    loop {
        let due = due(run.store(), &run.state)?;
        let count = run.state.items.len() + due.len();
        if !due.is_empty() && count > max_items {
            return Err(Error::TooMany { run: run.id().clone(), count, most: max_items });
        }
        let entries: Vec<_> =
            due.into_iter().map(|due| NewEntry::Extended(Cause::Rule(due.rule), vec![due.item])).collect();
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        // A crash here leaves unreachable objects; the next coordinator comes to the same items.
        if let Some(links) = run.propose(&entries)? {
            return Ok(links);
        }
    }
}

fn read(store: &Store, name: &FilePath, revision: &Revision) -> Result<Vec<u8>, Error> {
    let bytes = store.read_blob(revision.product.oid)?;
    if Digest::of(&bytes) != revision.product.sha256 {
        return Err(Error::Damaged(name.clone(), revision.number));
    }
    Ok(bytes)
}

/// What can go wrong while rules are applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run could not be read or recorded on.
    #[error(transparent)]
    Run(#[from] run::Error),
    /// A document could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A document's bytes are not those of its entry.
    #[error("revision {1} of the document {0:?} is damaged: its bytes are not those that its entry names")]
    Damaged(FilePath, u64),
    /// The run has as many items as it may have.
    #[error("the rules of {run:?} would give it {count} items; at most {most} are allowed")]
    TooMany {
        /// The run.
        run: RunId,
        /// How many items it would have.
        count: usize,
        /// How many it may have.
        most: usize,
    },
}
