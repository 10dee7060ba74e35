//! Claims a few more items than run, so that slots are not idle while the remote answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::end_entries::Batch;
use crate::engine::finished_attempt::FinishedAttempt;
use crate::engine::prepare::{self, Prepared};
use crate::engine::slots::Claim;
use crate::model::driver::DriverId;
use crate::model::entry::{Again, Event, ItemEnded};
use crate::model::item_index::ItemIndex;
use crate::run::operate::NewEntry;
use crate::run::operate::steer::requeued;
use crate::run::operate::via::Via;

use super::shared::Ahead;
use super::{Claimed, Driver, Error};

/// The shortest mean length of attempts that counts.
const SHORTEST: Duration = Duration::from_millis(50);

/// The longest time that a result waits for others, to be pushed with them.
const LONGEST_GATHERING: Duration = Duration::from_millis(100);

/// The most claims ahead for each slot: far drivers take seconds for a push, and the others leave
/// room for them.
const MOST_FOR_SLOT: usize = 4;

/// How long results wait for the remote, and how long attempts take: means of the last few.
#[derive(Default)]
pub(in crate::engine) struct Waits {
    since: Option<Instant>,
    wait: Duration,
    length: Duration,
}

impl Waits {
    /// Returns how many items to claim ahead for so many slots, if a round of all drivers takes so
    /// long: the wait before one was measured.
    fn claims_needed(&self, slots: usize, round: Duration) -> usize {
        if self.length.is_zero() {
            return 0;
        }
        let wait = if self.wait.is_zero() { round } else { self.wait };
        let (wait, length) = (wait.as_millis(), self.length.max(SHORTEST).as_millis());
        let claims = (slots as u128 * wait).div_ceil(length);
        let most = slots.saturating_mul(MOST_FOR_SLOT);
        usize::try_from(claims).unwrap_or(most).min(most)
    }

    /// Returns how long the first result that waits for the remote still waits for others.
    pub(super) fn gathering(&self, push_time: Duration) -> Duration {
        let until = self.since.map(|since| since + push_time.min(LONGEST_GATHERING));
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    pub(super) fn ended(&mut self, finished: &[FinishedAttempt]) {
        self.since.get_or_insert_with(Instant::now);
        for one in finished {
            self.length = mean(self.length, Duration::from_millis(one.result.duration_ms));
        }
    }

    pub(super) fn accepted(&mut self) {
        if let Some(since) = self.since.take() {
            self.wait = mean(self.wait, since.elapsed());
        }
    }
}

fn mean(before: Duration, new: Duration) -> Duration {
    if before.is_zero() { new } else { (before * 3 + new) / 4 }
}

impl Driver<'_> {
    /// Prepares claims of further items without locks: of those that no driver has a free slot for,
    /// at most half.
    pub(super) fn claim_ahead(&mut self, concurrency: usize, batch: &mut Batch) -> Vec<(ItemIndex, Ahead)> {
        let slots = self.slots_of_run();
        let Some(shared) = &self.shared else { return Vec::new() };
        let round = self.run.via().map(Via::round).unwrap_or_default();
        let lacking = shared.waits.claims_needed(slots, round).saturating_sub(shared.ahead.len());
        let ready = self.schedule.eligible();
        if lacking == 0 || ready == 0 || self.machine.reusable.is_some() {
            return Vec::new();
        }
        let missing = lacking.min(ready.saturating_sub(self.idle_elsewhere().0) / 2);
        if missing == 0 {
            return Vec::new();
        }
        let most = self.most_at_once(concurrency.saturating_add(shared.ahead.len() + missing));
        let mut ahead = Vec::new();
        for at in self.schedule.decide(&self.run.state, most, self.now()).fire {
            let has_locks = !self.run.state.graph.item(at).resource_locks.is_empty();
            // An item that cannot be prepared fails when it is its turn.
            let prepared = if has_locks { None } else { prepare::prepare(self.run, &self.machine, at).ok() };
            match (prepared, &self.shared) {
                (Some(Prepared { mut fired, manifest, spec }), Some(sharing)) => {
                    sharing.sign(&mut fired);
                    ahead.push((at, Ahead::new(spec, fired.manifest)));
                    batch.entries.push(NewEntry::fired(Event::ItemFired(fired), &manifest));
                }
                _ => self.schedule.ended(&self.run.state, at),
            }
        }
        ahead
    }

    /// Keeps claims that were accepted until a slot is free.
    pub(super) fn keep_ahead(&mut self, ahead: Vec<(ItemIndex, Ahead)>) {
        for (at, one) in ahead {
            let manifest = self.run.state.items[at].manifest;
            let is_held = self.holds(at, one.spec.attempt) && manifest == Some(one.manifest);
            if let Some(shared) = self.shared.as_mut().filter(|_| is_held) {
                shared.ahead.insert(at, one);
            }
        }
    }

    /// Starts claims that waited for a slot.
    pub(super) fn start_ahead(&mut self) -> Result<(), Error> {
        let slots = self.slots_of_run();
        let is_waiting = self.shared.as_ref().is_some_and(|shared| !shared.ahead.is_empty());
        if !is_waiting || self.is_slow() || self.running.len() >= slots || !self.is_sure() {
            return Ok(());
        }
        let mut claimed = BTreeMap::new();
        let waiting: Vec<ItemIndex> = self.shared.iter().flat_map(|shared| shared.ahead.keys().copied()).collect();
        for at in waiting {
            if self.running.len() + claimed.len() >= slots {
                break;
            }
            let locks = &self.run.state.graph.item(at).resource_locks;
            let Claim::Granted(granted) = self.slots.claim(locks, None)? else { continue };
            let ahead = self.shared.as_mut().and_then(|shared| shared.ahead.remove(&at));
            let Some(Ahead { spec, manifest, .. }) = ahead else { continue };
            self.record_holder(&granted, &spec)?;
            claimed.insert(at, Claimed { spec, slots: granted, manifest });
        }
        // Another driver may hold some of them by now.
        self.start_claimed(claimed)
    }

    /// Returns the entries that hand back all claims that wait for a slot.
    pub(super) fn hand_back_all(&mut self, why: &str) -> Vec<NewEntry> {
        let all: Vec<ItemIndex> = self.shared.iter().flat_map(|shared| shared.ahead.keys().copied()).collect();
        self.hand_back(&all, why)
    }

    /// Returns the entries that hand back these claims, which wait for a slot.
    pub(super) fn hand_back(&mut self, claims: &[ItemIndex], why: &str) -> Vec<NewEntry> {
        let Some(shared) = &mut self.shared else { return Vec::new() };
        let driver: DriverId = shared.id().clone();
        let ahead: Vec<_> = claims.iter().filter_map(|at| shared.ahead.remove_entry(at)).collect();
        let released = ahead.into_iter().filter(|(at, ahead)| self.holds(*at, ahead.spec.attempt));
        released
            .map(|(at, _)| {
                NewEntry::plain(Event::ItemRequeued(ItemEnded {
                    detail: Some(why.to_owned()),
                    driver: Some(driver.clone()),
                    ..requeued(&self.run.state, at, Again::Operator)
                }))
            })
            .collect()
    }
}
