//! The entries that the end of an attempt comes to. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::entry::{Again, Event, ItemDropped, ItemEnded, ItemReconciled, Outcome};
use crate::model::state::{Phase, RunState};
use crate::model::time::Moment;
use crate::run::NewEntry;
use crate::run::reuse::Found;
use crate::run::steer::lost_with;

use super::attempt::{Finished, Job, Verdict};
use super::decide::{LONGEST_WAIT, left_waiting};

/// What is to be recorded next, with no item skipped twice.
#[derive(Default)]
pub(super) struct Batch {
    /// The events in order.
    pub(super) entries: Vec<NewEntry>,
    skipped: BTreeSet<usize>,
}

impl Batch {
    /// Adds what a finished attempt comes to: done, failed for good, or to be tried again.
    pub(super) fn finished(&mut self, state: &RunState, finished: &Finished, attempts_left: bool, now: Moment) {
        let at = finished.at;
        let transcript = finished.transcript.as_ref().map(|kept| kept.transcript);
        let ended = |reason: Again, detail: &str, not_before: Option<Moment>| ItemEnded {
            item: finished.item.clone(),
            attempt: finished.attempt,
            reason,
            detail: Some(detail.to_owned()),
            exit: finished.exit,
            duration_ms: Some(finished.duration_ms),
            transcript,
            not_before,
            blocks: finished.blocks.clone(),
        };
        match &finished.verdict {
            Verdict::Interrupted => {
                self.push(Event::ItemRequeued(ended(Again::Operator, "the driver was interrupted", None)));
            }
            Verdict::NoSpace(reason) => self.push(Event::ItemRequeued(ended(Again::Operator, reason, None))),
            Verdict::Failed { reason, hopeless } if !hopeless && attempts_left => {
                let due = now.plus_millis(backoff(state.items[at].attempts - state.items[at].granted_at));
                self.push(Event::ItemRetried(ended(Again::Failure, reason, Some(due))));
            }
            verdict => {
                let done = matches!(verdict, Verdict::Done);
                self.push(Event::ItemReconciled(ItemReconciled {
                    item: finished.item.clone(),
                    attempt: finished.attempt,
                    status: if done { Outcome::Done } else { Outcome::Failed },
                    reason: verdict.reason().or(finished.red.as_deref()).map(str::to_owned),
                    exit: finished.exit,
                    duration_ms: finished.duration_ms,
                    products: finished.products.clone(),
                    verify: finished.verify,
                    transcript,
                    reused: None,
                    blocks: finished.blocks.clone(),
                    summary: finished.summary.clone(),
                }));
                if !done {
                    self.cascade(state, at);
                } else if finished.verify.is_some_and(|verified| !verified.passed) && state.would_block(at) {
                    self.block(state, at);
                }
            }
        }
    }

    /// Adds the end of an item whose products another run has.
    pub(super) fn reused(&mut self, job: &Job, found: Found) {
        let event = Event::ItemReconciled(ItemReconciled {
            item: job.item.clone(),
            attempt: job.attempt,
            status: Outcome::Done,
            reason: None,
            exit: None,
            duration_ms: 0,
            products: found.products,
            verify: found.verify,
            transcript: None,
            reused: Some(found.reused),
            blocks: found.blocks,
            summary: None,
        });
        self.entries.push(NewEntry::Reused(event, found.evidence));
    }

    /// Adds the failure of an item without a process, and all that is lost with it; attempt 0 where nothing was dispatched.
    pub(super) fn failed(&mut self, state: &RunState, at: usize, attempt: u32, reason: String) {
        self.push(Event::ItemReconciled(ItemReconciled {
            item: state.graph.item(at).id.clone(),
            attempt,
            status: Outcome::Failed,
            reason: Some(reason),
            exit: None,
            duration_ms: 0,
            products: BTreeMap::new(),
            verify: None,
            transcript: None,
            reused: None,
            blocks: Vec::new(),
            summary: None,
        }));
        self.cascade(state, at);
    }

    /// Adds that a crash took an attempt, and that another will follow.
    pub(super) fn crashed(&mut self, state: &RunState, at: usize, detail: String) {
        self.push(Event::ItemRequeued(ItemEnded {
            item: state.graph.item(at).id.clone(),
            attempt: state.items[at].attempts,
            reason: Again::Crash,
            detail: Some(detail),
            exit: None,
            duration_ms: None,
            transcript: None,
            not_before: None,
            blocks: Vec::new(),
        }));
    }

    /// Adds the skipping of everything that is lost with an item, through the whole graph at once.
    pub(super) fn cascade(&mut self, state: &RunState, at: usize) {
        let cause = &state.graph.item(at).id;
        for lost in lost_with(state, at) {
            if self.skipped.insert(lost) {
                self.push(Event::ItemSkipped(ItemDropped {
                    item: state.graph.item(lost).id.clone(),
                    attempt: state.items[lost].attempts,
                    reason: format!("it depends on {cause:?}, which did not get done"),
                }));
            }
        }
    }

    /// Adds the skipping of everything that a red gate blocks.
    fn block(&mut self, state: &RunState, at: usize) {
        let gate = &state.graph.item(at).id;
        for &dependent in state.graph.dependents(at) {
            if state.items[dependent].phase != Phase::Waiting || state.needs_output(dependent, at) {
                continue;
            }
            for lost in [dependent].into_iter().chain(lost_with(state, dependent)) {
                if self.skipped.insert(lost) {
                    self.push(Event::ItemSkipped(ItemDropped {
                        item: state.graph.item(lost).id.clone(),
                        attempt: state.items[lost].attempts,
                        reason: format!("it depends on the gate {gate:?}, whose check failed"),
                    }));
                }
            }
        }
    }

    /// Adds the skipping of items that wait for one that is lost, with everything that is lost with them.
    pub(super) fn sweep(&mut self, state: &RunState) {
        let lost: BTreeSet<usize> = left_waiting(state).into_iter().map(|(_, with)| with).collect();
        lost.into_iter().for_each(|at| self.cascade(state, at));
    }

    fn push(&mut self, event: Event) {
        self.entries.push(NewEntry::Plain(event));
    }
}

/// Returns how many milliseconds to wait after the nth failure in a row: twice as long each time, up to a limit.
fn backoff(failures: u32) -> u64 {
    (1000 << failures.min(20)).min(LONGEST_WAIT)
}
