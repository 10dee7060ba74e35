//! The schedule, driven through whole runs by a driver without processes.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use git_handoff::engine::decide::{LONGEST_WAIT, Schedule, left_waiting};
use git_handoff::model::entry::{Again, Event, Outcome};
use git_handoff::model::item_index::ItemIndex;
use git_handoff::model::state::{Phase, RunState};
use git_handoff::model::time::Moment;
use git_handoff::run::operate::steer::lost_with;
use proptest::prelude::*;

use crate::model::{Made, dropped, ended, fired, reconciled, submitted};

/// The result of an attempt.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Done,
    Failed,
    Retried,
    Requeued,
    Cancelled,
}

/// Drives a run as the driver does, and checks at every step what must never happen.
struct Drive {
    state: RunState,
    schedule: Schedule,
    concurrency: usize,
    now: Moment,
    running: BTreeSet<ItemIndex>,
    /// The step at which each item that waits for nothing but its turn was first seen so.
    ready_since: HashMap<ItemIndex, usize>,
    step: usize,
    fired: Vec<ItemIndex>,
}

impl Drive {
    fn new(items: &[Made], concurrency: usize) -> Self {
        let state = submitted(items);
        Self {
            schedule: Schedule::new(&state, &BTreeSet::new(), Moment::from_millis(0)),
            state,
            concurrency,
            now: Moment::from_millis(0),
            running: BTreeSet::new(),
            ready_since: HashMap::new(),
            step: 0,
            fired: Vec::new(),
        }
    }

    /// Dispatches what the schedule says; returns what it waits for.
    fn dispatch(&mut self) -> Option<Moment> {
        let decision = self.schedule.decide(&self.state, self.concurrency, self.now);
        for (at, item) in self.state.items.indexed() {
            let due = item.not_before.is_none_or(|due| due <= self.now);
            if item.phase == Phase::Waiting && due && self.state.blocked_by(at).next().is_none() {
                self.ready_since.entry(at).or_insert(self.step);
            } else {
                self.ready_since.remove(&at);
            }
        }
        for &at in &decision.fire {
            let since = self.ready_since.remove(&at).expect("what is dispatched was ready");
            for (other, waits) in &self.ready_since {
                let shared = self.locks(at).intersection(&self.locks(*other)).next().is_some();
                assert!(!shared || *waits >= since, "{at:?} passed {other:?}, which waited longer for the same lock");
            }
            // The fold refuses an item before its dependencies and two holders of one lock.
            let attempt = self.state.items[at].attempts + 1;
            self.state.apply(&fired(at.get(), attempt)).unwrap();
            self.running.insert(at);
            self.fired.push(at);
        }
        assert!(self.running.len() <= self.concurrency);
        assert_eq!(self.running.len(), self.schedule.running());
        self.step += 1;
        decision.wake
    }

    fn locks(&self, at: ItemIndex) -> BTreeSet<&String> {
        self.state.graph.item(at).resource_locks.iter().collect()
    }

    fn end(&mut self, at: ItemIndex, fate: Fate) {
        self.running.remove(&at);
        let attempt = self.state.items[at].attempts;
        match fate {
            Fate::Done => self.record(at, &reconciled(at.get(), attempt, Outcome::Done)),
            Fate::Retried => {
                let due = self.now.plus_millis(1000);
                self.record(at, &Event::ItemRetried(ended(at.get(), attempt, Again::Failure, Some(due))));
            }
            Fate::Requeued => self.record(at, &Event::ItemRequeued(ended(at.get(), attempt, Again::Crash, None))),
            Fate::Failed => {
                let lost = self.lost_with(at);
                self.record(at, &reconciled(at.get(), attempt, Outcome::Failed));
                lost.into_iter().for_each(|position| self.skip(position));
            }
            Fate::Cancelled => {
                let lost = self.lost_with(at);
                self.record(at, &Event::ItemCancelled(dropped(at.get(), attempt)));
                lost.into_iter().for_each(|lost_at| self.skip(lost_at));
            }
        }
        assert_eq!(left_waiting(&self.state), Vec::new());
    }

    fn skip(&mut self, at: ItemIndex) {
        let attempt = self.state.items[at].attempts;
        self.record(at, &Event::ItemSkipped(dropped(at.get(), attempt)));
    }

    fn record(&mut self, at: ItemIndex, event: &Event) {
        self.state.apply(event).unwrap();
        self.schedule.ended(&self.state, at);
    }

    /// Returns what is lost with an item, after comparing it with the transitive closure.
    fn lost_with(&self, at: ItemIndex) -> Vec<ItemIndex> {
        let lost = lost_with(&self.state, at);
        let mut closure = BTreeSet::from([at]);
        // As often as the longest path is long.
        for _ in 0..self.state.items.len() {
            for next in self.state.items.indices() {
                if self.state.graph.dependencies(next).iter().any(|on| closure.contains(on)) {
                    closure.insert(next);
                }
            }
        }
        closure.remove(&at);
        closure.retain(|position| self.state.items[*position].phase == Phase::Waiting);
        assert_eq!(lost.iter().copied().collect::<BTreeSet<_>>(), closure);
        assert_eq!(lost.len(), closure.len(), "nothing is lost twice");
        lost
    }

    /// Drives the run to its end; `fates` says for each attempt in turn which of the running ones
    /// ends, and how.
    fn settle(&mut self, mut fates: impl Iterator<Item = (usize, Fate)>) {
        let mut retries = self.state.items.len() * 3;
        while !self.state.is_settled() {
            let wake = self.dispatch();
            if self.running.is_empty() {
                assert!(!self.state.is_settled());
                self.now = wake.expect("if nothing runs, time is what is missing").max(self.now);
                continue;
            }
            let (pick, fate) = fates.next().unwrap_or((0, Fate::Done));
            let again = matches!(fate, Fate::Retried | Fate::Requeued);
            retries -= usize::from(again && retries > 0);
            let fate = if again && retries == 0 { Fate::Done } else { fate };
            let at = *self.running.iter().nth(pick % self.running.len()).unwrap();
            self.end(at, fate);
        }
        assert!(self.schedule.is_idle());
        assert!(self.schedule.decide(&self.state, self.concurrency, self.now).fire.is_empty());
    }
}

fn numbers(items: &[ItemIndex]) -> Vec<usize> {
    items.iter().map(|at| at.get()).collect()
}

fn graphs() -> impl Strategy<Value = Vec<Made>> {
    (1usize..24).prop_flat_map(|count| {
        let items = (0..count).map(|at| {
            let on = proptest::collection::btree_set(0..at.max(1), 0..4.min(at + 1));
            let on = on.prop_map(move |on| if at == 0 { Vec::new() } else { on.into_iter().collect() });
            let locks = proptest::collection::btree_set(0usize..4, 0..4).prop_map(|locks| locks.into_iter().collect());
            (on, locks)
        });
        items.collect::<Vec<_>>()
    })
}

fn fates() -> impl Strategy<Value = Vec<(usize, Fate)>> {
    let fate = prop_oneof![
        4 => Just(Fate::Done),
        1 => Just(Fate::Failed),
        2 => Just(Fate::Retried),
        1 => Just(Fate::Requeued),
        1 => Just(Fate::Cancelled),
    ];
    proptest::collection::vec((any::<usize>(), fate), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn every_run_settles_within_its_limits(items in graphs(), fates in fates(), concurrency in 1usize..5) {
        Drive::new(&items, concurrency).settle(fates.into_iter());
    }

    /// Starting over from the state at any moment, as after others appended, changes nothing that
    /// matters.
    #[test]
    fn a_new_schedule_continues_where_the_old_one_was(items in graphs(), fates in fates(), stop in 0usize..20) {
        let mut drive = Drive::new(&items, 2);
        for (pick, fate) in fates.iter().take(stop) {
            let wake = drive.dispatch();
            match drive.running.iter().nth(pick % drive.running.len().max(1)).copied() {
                Some(at) => drive.end(at, *fate),
                None => drive.now = wake.unwrap_or(drive.now),
            }
        }
        drive.schedule = Schedule::new(&drive.state, &BTreeSet::new(), drive.now);
        // Waiting times are not recorded; from here on the order is the plan's.
        drive.ready_since.clear();
        drive.settle(fates.into_iter().skip(stop));
    }
}

#[test]
fn many_locks_get_their_turn_in_a_stream_of_single_ones() {
    // Two streams, each item of which needs the one before, on two locks; and one item that needs
    // both locks.
    let mut items: Vec<Made> = vec![(vec![], vec![0]), (vec![], vec![1]), (vec![], vec![0, 1])];
    for at in 3..23 {
        items.push((vec![if at < 5 { at - 3 } else { at - 2 }], vec![(at - 3) % 2]));
    }
    let mut drive = Drive::new(&items, 8);
    drive.settle(std::iter::empty());
    assert_eq!(numbers(&drive.fired[..3]), [0, 1, 2], "{:?}", drive.fired);
}

#[test]
fn an_attempt_that_is_not_over_keeps_its_locks_and_its_place() {
    let mut drive = Drive::new(&[(vec![], vec![0]), (vec![], vec![0]), (vec![], vec![])], 1);
    drive.dispatch();
    assert_eq!(numbers(&drive.fired), [0]);
    let first = drive.fired[0];
    // Another process cancels the item and asks for it again; its worker takes a while to end.
    drive.state.apply(&Event::ItemCancelled(dropped(0, 1))).unwrap();
    drive.state.apply(&Event::ItemRequeued(ended(0, 1, Again::Operator, None))).unwrap();
    let mut schedule = Schedule::new(&drive.state, &BTreeSet::from([first]), Moment::from_millis(0));
    let fire = schedule.decide(&drive.state, 2, drive.now).fire;
    assert_eq!(numbers(&fire), [2], "neither i1, for the lock, nor i0 again");
    schedule.ended(&drive.state, first);
    let second_fire = schedule.decide(&drive.state, 2, drive.now).fire;
    assert_eq!(numbers(&second_fire), [1], "i0 waits behind i1 now");
    assert!(!schedule.is_idle());
}

#[test]
fn scheduler_finds_items_that_wait_for_lost_events() {
    let mut state = submitted(&[(vec![], vec![]), (vec![], vec![]), (vec![0, 1], vec![]), (vec![2], vec![])]);
    for event in [
        fired(0, 1),
        fired(1, 1),
        reconciled(0, 1, Outcome::Failed),
        Event::ItemSkipped(dropped(2, 0)),
        Event::ItemSkipped(dropped(3, 0)),
        // An operator who has not seen what comes next.
        Event::ItemRequeued(ended(0, 1, Again::Operator, None)),
        Event::ItemRequeued(ended(2, 0, Again::Operator, None)),
        Event::ItemRequeued(ended(3, 0, Again::Operator, None)),
        // A driver that has not seen what came before, to whom i2 and i3 were skipped already.
        reconciled(1, 1, Outcome::Failed),
    ] {
        state.apply(&event).unwrap();
    }
    let (waiting, lost) = left_waiting(&state)[0];
    assert_eq!((left_waiting(&state).len(), waiting.get(), lost.get()), (1, 2, 1));
    assert_eq!(numbers(&lost_with(&state, lost)), [2, 3]);
}

#[test]
fn ten_thousand_items_cost_ten_thousand_steps() {
    // A quadratic schedule takes minutes for each of these.
    let count = 30_000;
    let started = Instant::now();
    let one_lock: Vec<Made> = (0..count).map(|_| (vec![], vec![0])).collect();
    let chain: Vec<Made> = (0..count).map(|at| (if at == 0 { vec![] } else { vec![at - 1] }, vec![])).collect();
    for items in [one_lock, chain] {
        let mut state = submitted(&items);
        let mut schedule = Schedule::new(&state, &BTreeSet::new(), Moment::from_millis(0));
        for expected in 0..count {
            let fire = schedule.decide(&state, 8, Moment::from_millis(0)).fire;
            assert_eq!(numbers(&fire), [expected]);
            state.apply(&fired(expected, 1)).unwrap();
            state.apply(&reconciled(expected, 1, Outcome::Done)).unwrap();
            schedule.ended(&state, fire[0]);
        }
        assert!(state.is_settled() && schedule.is_idle());
    }
    // All at once and all to be tried again at one moment, then one after the other.
    let mut state = submitted(&vec![(vec![], vec![]); count]);
    let mut schedule = Schedule::new(&state, &BTreeSet::new(), Moment::from_millis(0));
    assert_eq!(schedule.decide(&state, count, Moment::from_millis(0)).fire.len(), count);
    for at in state.items.indices() {
        let due = Moment::from_millis(2000);
        state.apply(&fired(at.get(), 1)).unwrap();
        state.apply(&Event::ItemRetried(ended(at.get(), 1, Again::Failure, Some(due)))).unwrap();
        schedule.ended(&state, at);
    }
    for at in state.items.indices() {
        state.apply(&Event::ItemCancelled(dropped(at.get(), 1))).unwrap();
        schedule.ended(&state, at);
    }
    assert!(schedule.is_idle());
    assert!(started.elapsed() < Duration::from_secs(90), "{:?}", started.elapsed());
}

#[test]
fn waits_are_bounded_when_the_clock_jumps() {
    let mut state = submitted(&[(vec![], vec![])]);
    let century = Moment::from_millis(100 * 365 * 24 * 60 * 60 * 1000);
    state.apply(&fired(0, 1)).unwrap();
    state.apply(&Event::ItemRetried(ended(0, 1, Again::Failure, Some(century)))).unwrap();
    let mut schedule = Schedule::new(&state, &BTreeSet::new(), Moment::from_millis(1000));
    let due = schedule.decide(&state, 1, Moment::from_millis(1000)).wake.unwrap();
    assert_eq!(due, Moment::from_millis(1000).plus_millis(LONGEST_WAIT));
    assert_eq!(numbers(&schedule.decide(&state, 1, due).fire), [0]);
}
