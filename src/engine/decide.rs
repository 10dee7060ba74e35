//! What comes next. Pure: no I/O, no clock, no randomness.
//!
//! The schedule is told what happened and keeps its own ready set, so that deciding costs what changed and not what there is:
//! the run is looked at as a whole only once, when the schedule is made.

use std::collections::{BTreeSet, HashMap};

use crate::model::state::{Edge, Phase, RunState};
use crate::model::time::Moment;

/// The longest that an item waits after a failure, and the longest that is waited for any `notBefore`, in milliseconds: one that
/// is further away was written before a clock was put right.
pub const LONGEST_WAIT: u64 = 10 * 60 * 1000;

/// What may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of running items.
    pub concurrency: usize,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The items to dispatch, by position; they hold their locks from now on.
    pub fire: Vec<usize>,
    /// The moment at which there may be more to do without anything happening.
    pub wake: Option<Moment>,
}

/// The items that could run, the locks they wait for, and those that run.
///
/// Every lock has a queue. An item that becomes ready joins the queues of all its locks at once and runs when it is at the
/// head of each; it stays there until it ends. Items join in one order everywhere, so no two can wait for each other, and
/// one that needs many locks is not passed by for ever by those that need few.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// For each item, how many of its dependencies are not done yet.
    missing: Vec<usize>,
    /// Items that need nothing but a free place, in plan order.
    eligible: BTreeSet<usize>,
    /// Items that are ready but may not be dispatched before a moment.
    delayed: BTreeSet<(Moment, usize)>,
    /// When each delayed item is due, to find it in `delayed`.
    due: HashMap<usize, Moment>,
    /// For each lock, the items that wait for it behind the one that holds it, by their tickets.
    queues: HashMap<String, BTreeSet<(u64, usize)>>,
    /// The ticket with which each item joined the queues of its locks.
    tickets: HashMap<usize, u64>,
    next_ticket: u64,
    running: BTreeSet<usize>,
    /// The latest moment that it was told of.
    now: Moment,
}

impl Schedule {
    /// Makes the schedule of a run as it stands.
    ///
    /// `alive` are the items of which an attempt is not over yet, whatever the state says of them: one that was cancelled
    /// keeps its place and its locks until its processes are gone, and [`Schedule::ended`] says so. Moments are only compared
    /// with each other, so `now`, here and in [`Schedule::decide`], may be told by a clock that nobody puts right.
    pub fn new(state: &RunState, alive: &BTreeSet<usize>, now: Moment) -> Self {
        let count = state.items.len();
        let mut schedule = Self {
            missing: vec![0; count],
            eligible: BTreeSet::new(),
            delayed: BTreeSet::new(),
            due: HashMap::new(),
            queues: HashMap::new(),
            tickets: HashMap::new(),
            next_ticket: 0,
            running: BTreeSet::new(),
            now,
        };
        for at in 0..count {
            schedule.missing[at] = state.blocked_by(at).count();
        }
        let held = |at: &usize| state.items[*at].phase == Phase::Running || alive.contains(at);
        // Before any that waits, so that they are at the heads of the queues of the locks that they hold.
        for at in (0..count).filter(held) {
            schedule.running.insert(at);
            schedule.join(state, at);
        }
        for at in (0..count).filter(|at| !held(at)) {
            schedule.ready(state, at);
        }
        schedule
    }

    /// Takes in the items that were added to the run since the schedule was made.
    pub fn grow(&mut self, state: &RunState) {
        for at in self.missing.len()..state.items.len() {
            self.missing.push(state.blocked_by(at).count());
            self.ready(state, at);
        }
    }

    /// Decides what to dispatch now.
    pub fn decide(&mut self, state: &RunState, limits: Limits, now: Moment) -> Decision {
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
        while self.running.len() < limits.concurrency {
            let Some(at) = self.eligible.pop_first() else { break };
            self.running.insert(at);
            fire.push(at);
        }
        Decision { fire, wake: self.delayed.first().map(|(due, _)| *due) }
    }

    /// Takes note that an item does not run, or does not wait, any more; `state` is the state after the entries that say so.
    pub fn ended(&mut self, state: &RunState, at: usize) {
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
                    // A gate that blocks what depends on it is done, and yet nothing goes on.
                    if state.edge(next, at) == Edge::Met {
                        self.missing[next] -= 1;
                        self.ready(state, next);
                    }
                }
            }
            Phase::Running | Phase::Failed | Phase::Skipped | Phase::Cancelled => {}
        }
    }

    /// Returns whether nothing runs and nothing can be started by waiting.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty() && self.eligible.is_empty() && self.delayed.is_empty()
    }

    /// Returns how many items run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    fn ready(&mut self, state: &RunState, at: usize) {
        // What people decide is not ours to dispatch.
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

    fn queue_up(&mut self, state: &RunState, at: usize) {
        self.join(state, at);
        self.promote(state, at);
    }

    fn join(&mut self, state: &RunState, at: usize) {
        self.tickets.insert(at, self.next_ticket);
        for key in &state.graph.item(at).resource_locks {
            self.queues.entry(key.clone()).or_default().insert((self.next_ticket, at));
        }
        self.next_ticket += 1;
    }

    fn promote(&mut self, state: &RunState, at: usize) {
        let first =
            |key: &String| self.queues.get(key).and_then(BTreeSet::first).is_some_and(|(_, first)| *first == at);
        if state.graph.item(at).resource_locks.iter().all(first) {
            self.eligible.insert(at);
        }
    }

    fn release(&mut self, state: &RunState, at: usize) {
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

/// Returns the items that wait for one that was lost, each with the one it was lost with.
///
/// What one hand decides while another appends can leave some: a retry brings back an item that waits for two others while
/// the driver records the failure of the second.
pub fn left_waiting(state: &RunState) -> Vec<(usize, usize)> {
    let waiting = (0..state.items.len()).filter(|at| state.items[*at].phase == Phase::Waiting);
    waiting.filter_map(|at| Some((at, state.blocked_by(at).find(|on| state.edge(at, *on) == Edge::Lost)?))).collect()
}
