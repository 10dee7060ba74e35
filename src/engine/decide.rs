//! Decides which items to dispatch next. Pure: no I/O, no clock, no randomness.
//!
//! The schedule keeps its own ready set and is updated by events, so a decision costs as much as
//! the change and not as the run.

use std::collections::{BTreeSet, HashMap};

use crate::model::item_index::{ItemIndex, ItemVec};
use crate::model::state::{Edge, Phase, RunState};
use crate::model::time::Moment;

/// The longest delay after a failure or until a `notBefore`, in milliseconds. A later `notBefore`
/// was written by a clock that was wrong.
pub const LONGEST_WAIT: u64 = 10 * 60 * 1000;

/// The result of [`Schedule::decide`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The items to dispatch, by position. They hold their locks from now on.
    pub fire: Vec<ItemIndex>,
    /// When to decide again if nothing happens until then.
    pub wake: Option<Moment>,
}

/// The items that can run, the locks they wait for, and the items that run.
///
/// Every lock has a queue. An item that becomes ready joins the queues of all its locks at once. It
/// runs when it is at the head of each, and stays there until it ends. Because items join in the
/// same order everywhere, there is no deadlock, and an item with many locks does not starve.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// For each item, the number of its dependencies that are not done yet.
    missing: ItemVec<usize>,
    /// Items that only need a free place, in plan order.
    eligible: BTreeSet<ItemIndex>,
    /// Items that are ready but must wait until a moment.
    delayed: BTreeSet<(Moment, ItemIndex)>,
    /// When each delayed item is due, to find it in `delayed`.
    due: HashMap<ItemIndex, Moment>,
    /// For each lock, the items in its queue by ticket. The first one holds the lock.
    queues: HashMap<String, BTreeSet<(u64, ItemIndex)>>,
    /// The ticket with which each item joined the queues of its locks.
    tickets: HashMap<ItemIndex, u64>,
    next_ticket: u64,
    running: BTreeSet<ItemIndex>,
    /// The latest moment that was passed to [`Schedule::decide`].
    now: Moment,
}

impl Schedule {
    /// Returns the schedule for the current state of a run.
    ///
    /// `alive` are items with an attempt that is not over yet, whatever their state. A cancelled
    /// item keeps its place and its locks until its processes are gone and the driver calls
    /// [`Schedule::ended`]. Moments are only compared with each other, so `now` can come from a
    /// steady clock.
    pub fn new(state: &RunState, alive: &BTreeSet<ItemIndex>, now: Moment) -> Self {
        let mut schedule = Self {
            missing: state.items.indices().map(|at| state.blocked_by(at).count()).collect(),
            eligible: BTreeSet::new(),
            delayed: BTreeSet::new(),
            due: HashMap::new(),
            queues: HashMap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            running: BTreeSet::new(),
            now,
        };
        let is_active = |at: &ItemIndex| state.items[*at].phase == Phase::Running || alive.contains(at);
        // These come first, to be at the heads of the queues of the locks that they hold.
        for at in state.items.indices().filter(is_active) {
            schedule.running.insert(at);
            schedule.join(state, at);
        }
        for at in state.items.indices().filter(|at| !is_active(at)) {
            schedule.ready(state, at);
        }
        schedule
    }

    /// Adds the items that were added to the run since the schedule was made.
    pub fn grow(&mut self, state: &RunState) {
        for at in state.items.indices().skip(self.missing.len()) {
            self.missing.push(state.blocked_by(at).count());
            self.ready(state, at);
        }
    }

    /// Decides which items to dispatch now, so that at most `concurrency` run at once.
    pub fn decide(&mut self, state: &RunState, concurrency: usize, now: Moment) -> Decision {
        self.now = now;
        while let Some(&(due, at)) = self.delayed.first() {
            if due > now {
                break;
            }
            self.delayed.pop_first();
            self.due.remove(&at);
            self.queue_up(state, at);
        }
        let mut fire = Vec::new();
        while self.running.len() < concurrency {
            let Some(at) = self.eligible.pop_first() else { break };
            self.running.insert(at);
            fire.push(at);
        }
        Decision { fire, wake: self.delayed.first().map(|(due, _)| *due) }
    }

    /// Records that an item stopped running or waiting. `state` already reflects the entries for
    /// that.
    pub fn ended(&mut self, state: &RunState, at: ItemIndex) {
        self.running.remove(&at);
        self.eligible.remove(&at);
        if let Some(due) = self.due.remove(&at) {
            self.delayed.remove(&(due, at));
        }
        self.release(state, at);
        match state.items[at].phase {
            Phase::Waiting => self.ready(state, at),
            Phase::Done => {
                for &next in state.graph.dependents(at) {
                    // A gate can be done and still block its dependents.
                    if state.edge(next, at) == Edge::Met {
                        self.missing[next] -= 1;
                        self.ready(state, next);
                    }
                }
            }
            Phase::Running | Phase::Failed | Phase::Skipped | Phase::Cancelled => {}
        }
    }

    /// Records that an item that was to be dispatched cannot be dispatched by this driver.
    pub fn decline(&mut self, state: &RunState, at: ItemIndex) {
        self.running.remove(&at);
        self.release(state, at);
    }

    /// Returns true if nothing runs, and nothing can be started by waiting.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.eligible.is_empty() && self.delayed.is_empty()
    }

    /// Returns the number of items that only need a free place.
    pub fn eligible(&self) -> usize {
        self.eligible.len()
    }

    /// Returns the number of running items.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn ready(&mut self, state: &RunState, at: ItemIndex) {
        // Items for people are never dispatched.
        let for_people = state.graph.item(at).is_for_people();
        if self.missing[at] > 0 || state.items[at].phase != Phase::Waiting || for_people {
            return;
        }
        match state.items[at].not_before {
            Some(due) => {
                let due = due.min(self.now.plus_millis(LONGEST_WAIT));
                self.delayed.insert((due, at));
                self.due.insert(at, due);
            }
            None => self.queue_up(state, at),
        }
    }

    fn queue_up(&mut self, state: &RunState, at: ItemIndex) {
        self.join(state, at);
        self.promote(state, at);
    }

    fn join(&mut self, state: &RunState, at: ItemIndex) {
        self.tickets.insert(at, self.next_ticket);
        for key in &state.graph.item(at).resource_locks {
            self.queues.entry(key.clone()).or_default().insert((self.next_ticket, at));
        }
        self.next_ticket += 1;
    }

    fn promote(&mut self, state: &RunState, at: ItemIndex) {
        let first =
            |key: &String| self.queues.get(key).and_then(BTreeSet::first).is_some_and(|(_, first)| *first == at);
        if state.graph.item(at).resource_locks.iter().all(first) {
            self.eligible.insert(at);
        }
    }

    fn release(&mut self, state: &RunState, at: ItemIndex) {
        let Some(ticket) = self.tickets.remove(&at) else { return };
        let mut heads = BTreeSet::new();
        for key in &state.graph.item(at).resource_locks {
            let Some(queue) = self.queues.get_mut(key) else { continue };
            queue.remove(&(ticket, at));
            match queue.first() {
                Some(&(_, next)) => drop(heads.insert(next)),
                None => drop(self.queues.remove(key)),
            }
        }
        for next in heads {
            if !self.running.contains(&next) {
                self.promote(state, next);
            }
        }
    }
}

/// Returns the items that wait for a lost item, each with the lost one.
///
/// Two writers can cause this: an operator retries an item that waits for two others, while the
/// driver records the failure of the second.
pub fn left_waiting(state: &RunState) -> Vec<(ItemIndex, ItemIndex)> {
    let waiting = state.items.indices().filter(|at| state.items[*at].phase == Phase::Waiting);
    waiting.filter_map(|at| Some((at, state.blocked_by(at).find(|on| state.edge(at, *on) == Edge::Lost)?))).collect()
}
