//! Turns the end of an attempt into entries. Pure.

use std::collections::BTreeSet;

use crate::model::claims::Reported;
use crate::model::driver::DriverId;
use crate::model::entry::{Again, Claims, Event, Grade, ItemEnded, ItemReconciled, Outcome};
use crate::model::item_index::ItemIndex;
use crate::model::state::{Phase, RunState};
use crate::model::time::Moment;
use crate::model::usage::Usage;
use crate::run::import::reuse::Found;
use crate::run::operate::NewEntry;
use crate::run::operate::steer::{dropped, lost_with, requeued};

use super::attempt::Verdict;
use super::attempt::spec::AttemptSpec;
use super::decide::{LONGEST_WAIT, left_waiting};
use super::finished_attempt::FinishedAttempt;

/// Collects entries to record next, and skips no item twice.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<NewEntry>,
    skipped: BTreeSet<ItemIndex>,
}

impl Batch {
    /// Adds the end of an attempt: done, failed, or to be retried.
    pub(super) fn finished(&mut self, state: &RunState, finished: &FinishedAttempt, attempts_left: bool, now: Moment) {
        let at = finished.at;
        let transcript = finished.result.transcript.as_ref().map(|stored| stored.transcript);
        let ended = |reason: Again, detail: &str, not_before: Option<Moment>| ItemEnded {
            detail: Some(detail.to_owned()),
            exit: finished.result.exit,
            duration_ms: Some(finished.result.duration_ms),
            transcript,
            not_before,
            usage: usage(finished),
            claims: claims(finished).stated(),
            blocks: finished.result.blocks.clone(),
            driver: driver_of(state, at),
            ..ItemEnded::new(finished.result.item.clone(), finished.result.attempt, reason)
        };
        match &finished.result.verdict {
            Verdict::Interrupted => {
                self.push(Event::ItemRequeued(ended(Again::Operator, "the driver was interrupted", None)));
            }
            Verdict::Shortage(reason) => self.push(Event::ItemRequeued(ended(Again::Operator, reason, None))),
            Verdict::Crashed(reason) => self.push(Event::ItemRequeued(ended(Again::Crash, reason, None))),
            Verdict::Failed { reason, hopeless } if !hopeless && attempts_left => {
                let due = now.plus_millis(backoff(state.items[at].attempts - state.items[at].granted_at));
                self.push(Event::ItemRetried(ended(Again::Failure, reason, Some(due))));
            }
            verdict => {
                let done = matches!(verdict, Verdict::Done);
                let status = if done { Outcome::Done } else { Outcome::Failed };
                self.push(Event::ItemReconciled(ItemReconciled {
                    reason: verdict.reason().or(finished.result.red.as_deref()).map(str::to_owned),
                    exit: finished.result.exit,
                    duration_ms: finished.result.duration_ms,
                    products: finished.result.products.clone(),
                    verify: finished.result.verify,
                    check: finished.result.check.as_ref().map(|check| check.run.clone()),
                    check_before: finished.result.check_before.as_ref().map(|check| check.run.clone()),
                    transcript,
                    blocks: finished.result.blocks.clone(),
                    usage: usage(finished),
                    claims: Claims {
                        summary: finished.result.summary.clone(),
                        excluded: if done { finished.result.excluded.clone() } else { Vec::new() },
                        ..claims(finished)
                    }
                    .stated(),
                    grade: (done && state.graph.item(at).is_claimed()).then_some(Grade::Claimed),
                    reference: finished.result.reference.filter(|_| done),
                    protected: if done { finished.result.protected.clone() } else { Vec::new() },
                    protected_allowed: done && finished.result.protected_allowed,
                    protected_judged: done && finished.result.protected_judged,
                    driver: driver_of(state, at),
                    ..ItemReconciled::new(finished.result.item.clone(), finished.result.attempt, status)
                }));
                if !done {
                    self.cascade(state, at);
                } else if finished.result.verify.is_some_and(|verified| !verified.passed) && state.would_block(at) {
                    self.block(state, at);
                }
            }
        }
    }

    /// Adds the end of an item that reuses the products of another run.
    pub(super) fn reused(&mut self, spec: &AttemptSpec, driver: Option<DriverId>, found: Found) {
        let end = ItemReconciled {
            products: found.products,
            verify: found.verify,
            reused: Some(found.reused),
            blocks: found.blocks,
            driver,
            ..ItemReconciled::new(spec.item.clone(), spec.attempt, Outcome::Done)
        };
        self.entries.push(NewEntry::reused(end, found.evidence));
    }

    /// Adds a failure without a process, and skips its dependents. The attempt is 0 if there was no
    /// dispatch.
    pub(super) fn failed(&mut self, state: &RunState, at: ItemIndex, attempt: u32, reason: String) {
        self.push(Event::ItemReconciled(ItemReconciled {
            reason: Some(reason),
            driver: driver_of(state, at).filter(|_| attempt > 0),
            ..ItemReconciled::new(state.graph.item(at).id.clone(), attempt, Outcome::Failed)
        }));
        self.cascade(state, at);
    }

    /// Adds that a crash of the driver ended an attempt, and that another will follow.
    pub(super) fn crashed(&mut self, state: &RunState, at: ItemIndex, detail: String) {
        let driver = driver_of(state, at);
        self.push(Event::ItemRequeued(ItemEnded { detail: Some(detail), driver, ..requeued(state, at, Again::Crash) }));
    }

    /// Skips everything that depends on an item, directly or not.
    pub(super) fn cascade(&mut self, state: &RunState, at: ItemIndex) {
        let reason = format!("it depends on {:?}, which did not get done", state.graph.item(at).id);
        self.skip(state, lost_with(state, at), &reason);
    }

    /// Skips everything that a red gate blocks.
    fn block(&mut self, state: &RunState, at: ItemIndex) {
        let reason = format!("it depends on the gate {:?}, whose check failed", state.graph.item(at).id);
        for &dependent in state.graph.dependents(at) {
            if state.items[dependent].phase == Phase::Waiting && !state.needs_output(dependent, at) {
                let lost = [dependent].into_iter().chain(lost_with(state, dependent));
                self.skip(state, lost, &reason);
            }
        }
    }

    fn skip(&mut self, state: &RunState, items: impl IntoIterator<Item = ItemIndex>, reason: &str) {
        for at in items {
            if self.skipped.insert(at) {
                self.push(Event::ItemSkipped(dropped(state, at, reason)));
            }
        }
    }

    /// Skips items that wait for a lost one, and everything that depends on them.
    pub(super) fn sweep(&mut self, state: &RunState) {
        let lost: BTreeSet<ItemIndex> = left_waiting(state).into_iter().map(|(_, with)| with).collect();
        lost.into_iter().for_each(|at| self.cascade(state, at));
    }

    fn push(&mut self, event: Event) {
        self.entries.push(NewEntry::plain(event));
    }
}

/// Returns the delay after the nth failure in a row, in milliseconds. It doubles each time, up to a
/// limit.
fn backoff(failures: u32) -> u64 {
    (1000 << failures.min(20)).min(LONGEST_WAIT)
}

/// Returns the driver that holds the running attempt of an item.
fn driver_of(state: &RunState, at: ItemIndex) -> Option<DriverId> {
    state.items[at].holder.as_ref().map(|holder| holder.driver.clone())
}

/// Returns the tokens and the price that the worker reported.
fn usage(finished: &FinishedAttempt) -> Option<Usage> {
    finished.result.claims.as_ref().and_then(|reported| reported.usage)
}

/// Returns what else it reported of itself.
fn claims(finished: &FinishedAttempt) -> Claims {
    finished.result.claims.as_ref().map(Reported::claims).unwrap_or_default()
}
