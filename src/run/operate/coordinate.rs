//! The coordinator: applies the rules of a run, and records the items that they create.
//!
//! It has no state of its own: its decisions follow from the chain alone. So any number of
//! coordinators on any machines create each item exactly once. An item is named after its rule and
//! the rule's input, and a compare-and-swap records it only on the state that it was decided by.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::model::entry::{Cause, Event};
use crate::model::event::Unnamed;
use crate::model::judge::{self, Act, Judgement};
use crate::model::name::RunId;
use crate::model::rule::Rule;
use crate::model::state::RunState;
use crate::run::operate;
use crate::run::query::stopped_rules::{self, read};

use super::{NewEntry, OpenRun};

/// The changes since a run's rules were last applied.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    /// Whether there are new revisions of documents.
    pub documents: bool,
    /// Whether items were added or changed.
    pub items: bool,
}

impl Changed {
    /// Everything may have changed.
    pub const ANYTHING: Self = Self { documents: true, items: true };

    fn may_concern(self, rule: &Rule) -> bool {
        self.documents || (self.items && !rule.when.items.is_empty())
    }
}

/// Returns true if a rule that the changes may concern has an action now.
pub fn is_due(store: &Store, state: &RunState, changed: Changed) -> Result<bool, Error> {
    for rule in state.rules.iter().filter(|rule| changed.may_concern(rule)) {
        if action(store, state, rule)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn action(store: &Store, state: &RunState, rule: &Rule) -> Result<Option<Act>, Error> {
    if state.sealed || state.is_ended() {
        return Ok(None);
    }
    Ok(judge::acts(state, rule, |name, revision| read(store, name, revision))?)
}

/// Returns true if a rule of a run stopped before the run was done. Such a run does not seal
/// itself.
pub fn has_stopped_short(store: &Store, state: &RunState) -> Result<bool, Error> {
    for rule in &state.rules {
        if judge::stopped_short(state, rule, |name, revision| read(store, name, revision))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the result of every rule in the current state, with the reasons.
pub fn explain(store: &Store, state: &RunState) -> Result<Vec<Judgement>, Error> {
    let judged = state.rules.iter().map(|rule| judge::judge(state, rule, |name, revision| read(store, name, revision)));
    Ok(judged.collect::<Result<_, _>>()?)
}

/// Records the actions of the rules until no rule has one, and returns the entries.
///
/// Each action is decided by the state after those before it, and all are recorded with one swap.
/// If another writer appends first, all are decided again. A run does not grow beyond `max_items`.
pub fn apply(run: &mut OpenRun, max_items: usize) -> Result<Vec<Link>, Error> {
    loop {
        run.publish()?;
        // Once a whole round has no action, no rule has one.
        let (mut at, mut idle) = (0, 0);
        while idle < run.state.rules.len() {
            let rule = &run.state.rules[at % run.state.rules.len()];
            let (id, act) = (rule.id().clone(), action(run.store(), &run.state, rule)?);
            (at, idle) = (at + 1, idle + 1);
            let entry = match act {
                None => continue,
                Some(Act::Create(items)) => {
                    let count = run.state.items.len() + items.len();
                    if !items.is_empty() && count > max_items {
                        run.drop_staged()?;
                        return Err(Error::TooMany { run: run.id().clone(), count, most: max_items });
                    }
                    NewEntry::extended(Cause::Rule(id), items, &BTreeMap::new(), run.store().hash_kind())?
                }
                Some(Act::Conclude(concluded)) => NewEntry::plain(Event::RunConcluded(concluded)),
            };
            idle = 0;
            run.stage(&[entry])?;
        }
        // A crash here only leaves unreachable objects.
        if let Some(links) = run.publish_unless_raced()? {
            return Ok(links);
        }
    }
}

errors! {
    /// Failures to apply rules.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    TooMany { run: RunId, count: usize, most: usize } "too-many-items":
        "the rules of {run:?} would give it {count} items; at most {most} are allowed";
    #[from] Unnamed(Unnamed), Run(operate::Error), Document(stopped_rules::Unreadable);
}
