//! The coordinator: applies the rules of a run to the documents that it holds, and records the items that they create.
//!
//! It holds no state and judges nothing itself. What it does follows from the chain alone, so that any number of coordinators
//! on any number of machines, restarted at any moment, create each item exactly once: an item is named after its rule and
//! what the rule saw, and it is recorded by a compare-and-swap against just the state in which that was so.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::ledger::chain::Link;
use crate::model::entry::{Cause, Event};
use crate::model::judge::{self, Act, Judgement};
use crate::model::name::{ItemId, RunId};
use crate::model::rule::Rule;
use crate::model::state::RunState;
use crate::run::stops::{self, read};
use crate::run::{self, NewEntry, OpenRun};

/// What a rule does as a run stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The rule.
    pub rule: ItemId,
    /// What it does.
    pub act: Act,
}

impl Due {
    fn entry(self) -> NewEntry {
        match self.act {
            Act::Create(items) => NewEntry::Extended(Cause::Rule(self.rule), items, BTreeMap::new()),
            Act::Conclude(concluded) => NewEntry::Plain(Event::RunConcluded(concluded)),
        }
    }
}

/// What changed since a run's rules were looked at.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    /// Whether there are revisions of documents that they were not held against.
    pub documents: bool,
    /// Whether something became of items, or some were added.
    pub items: bool,
}

impl Changed {
    /// Anything may have.
    pub const ANYTHING: Self = Self { documents: true, items: true };

    fn may_concern(self, rule: &Rule) -> bool {
        self.documents || (self.items && !rule.when.items.is_empty())
    }
}

/// Returns what the rules of a run do as it stands, each as if it were the only one, in the order of the rules.
pub fn due(store: &Store, state: &RunState) -> Result<Vec<Due>, Error> {
    let due = state.rules.iter().map(|rule| one(store, state, rule)).collect::<Result<Vec<_>, _>>();
    Ok(due?.into_iter().flatten().collect())
}

/// Returns whether any rule does something as a run stands, of those that what changed may concern.
pub fn is_due(store: &Store, state: &RunState, changed: Changed) -> Result<bool, Error> {
    for rule in state.rules.iter().filter(|rule| changed.may_concern(rule)) {
        if one(store, state, rule)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn one(store: &Store, state: &RunState, rule: &Rule) -> Result<Option<Due>, Error> {
    if state.sealed || state.is_ended() {
        return Ok(None);
    }
    let act = judge::acts(state, rule, |name, revision| read(store, name, revision))?;
    Ok(act.map(|act| Due { rule: rule.id().clone(), act }))
}

/// Returns true if a rule of a run stopped short as it stands: such a run does not seal itself.
pub fn has_stopped_short(store: &Store, state: &RunState) -> Result<bool, Error> {
    for rule in &state.rules {
        if judge::stopped_short(state, rule, |name, revision| read(store, name, revision))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns for every rule of a run what it comes to as the run stands, and why.
pub fn explain(store: &Store, state: &RunState) -> Result<Vec<Judgement>, Error> {
    let judged = state.rules.iter().map(|rule| judge::judge(state, rule, |name, revision| read(store, name, revision)));
    Ok(judged.collect::<Result<_, _>>()?)
}

/// Records what the rules do until none does anything, and returns the entries.
///
/// Each is held against the state that those before it leave, and nothing is recorded unless all of it is: whoever appends first is
/// taken in, and the rules are looked at anew. So what is recorded follows from exactly the state before it. A run of `max_items`
/// items does not grow.
pub fn apply(run: &mut OpenRun, max_items: usize) -> Result<Vec<Link>, Error> {
    loop {
        run.publish()?;
        // After a whole round in which none does anything, none will.
        let (mut at, mut idle) = (0, 0);
        while idle < run.state.rules.len() {
            let rule = &run.state.rules[at % run.state.rules.len()];
            let due = one(run.store(), &run.state, rule)?;
            (at, idle) = (at + 1, idle + 1);
            let Some(due) = due else { continue };
            idle = 0;
            let count = run.state.items.len() + due.act.items().len();
            if !due.act.items().is_empty() && count > max_items {
                run.forget()?;
                return Err(Error::TooMany { run: run.id().clone(), count, most: max_items });
            }
            run.stage(&[due.entry()])?;
        }
        // A crash here leaves unreachable objects; the next coordinator comes to the same.
        if let Some(links) = run.publish_unless_raced()? {
            return Ok(links);
        }
    }
}

/// What can go wrong while rules are applied.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Document(#[from] stops::Unreadable),
    #[error("the rules of {run:?} would give it {count} items; at most {most} are allowed")]
    TooMany { run: RunId, count: usize, most: usize },
}
