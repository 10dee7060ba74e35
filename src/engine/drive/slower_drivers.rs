//! Shares the remote and the items with drivers whose pushes are slower.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::beat::News;
use crate::model::driver::DriverId;
use crate::model::item_index::ItemIndex;
use crate::run::operate::via::Via;

use super::{Driver, Error};

impl Driver<'_> {
    /// Returns the most items of the run that may run at once, if `own` of them run here. A claim
    /// that waits for a slot counts as one that runs.
    pub(super) fn concurrency(&self, own: usize) -> usize {
        let Some(shared) = &self.shared else { return self.most_at_once(own) };
        let running = self.running.iter().filter(|(at, running)| self.holds(**at, running.attempt)).count();
        let mine = running + shared.ahead.iter().filter(|(at, ahead)| self.holds(**at, ahead.spec.attempt)).count();
        let others = usize::try_from(self.run.state.running()).unwrap_or(usize::MAX).saturating_sub(mine);
        self.most_at_once(own.saturating_add(others))
    }

    /// Returns at most as many items as the plan allows to run at once.
    pub(super) fn most_at_once(&self, slots: usize) -> usize {
        self.limit().map_or(slots, |most| slots.min(most))
    }

    /// Returns the most items that the plan allows to run at once.
    fn limit(&self) -> Option<usize> {
        self.run.state.concurrency.and_then(|most| usize::try_from(most).ok())
    }

    /// Sets what the next beats say.
    pub(super) fn tell_beats(&self) {
        let (Some(shared), Some(via)) = (&self.shared, self.run.via()) else { return };
        let free = if self.is_slow() || self.short.is_some() {
            0
        } else {
            self.slots_of_run().saturating_sub(self.running.len())
        };
        shared.beats.set(News {
            free: free as u64,
            holds: self.running.keys().map(|at| self.run.state.graph.item(*at).id.clone()).collect(),
            claims: shared.unstarted().map(|at| self.run.state.graph.item(*at).id.clone()).collect(),
            push: via.call_time(),
            waits: shared.waiting.filter(|_| shared.is_announced).map(|since| (self.ended.len() as u64, since)),
        });
        shared.beats.set_declines(self.declines());
    }

    /// Starts or hands back the claims that wait for a slot.
    ///
    /// Returns the time until a start is possible, as long as this machine lacks something.
    pub(super) fn settle_claims(&mut self) -> Result<Option<Duration>, Error> {
        let held_back = self.hold_back()?;
        if held_back.is_none() {
            self.start_ahead()?;
        }
        self.yield_if_slow()?;
        self.share_ahead()?;
        self.note_waiting();
        Ok(held_back)
    }

    /// Notes since when there is something to push. A driver that was too late for a while asks
    /// faster ones for room, by a beat.
    pub(super) fn note_waiting(&mut self) {
        let is_waiting = self.has_to_push();
        let (Some(shared), Some(via)) = (&mut self.shared, self.run.via()) else { return };
        if !is_waiting {
            (shared.waiting, shared.is_announced) = (None, false);
        }
        let since = is_waiting.then(|| *shared.waiting.get_or_insert_with(Instant::now));
        let drivers = u32::try_from(via.drivers()).unwrap_or(u32::MAX);
        let patience = via.push_time().saturating_mul((drivers / 4).max(1));
        let is_late = via.was_too_late() && via.has_faster() && since.is_some_and(|since| since.elapsed() > patience);
        let is_new = is_late && !shared.is_announced;
        shared.is_announced |= is_late;
        let is_announced = shared.is_announced;
        self.run.set_waiting(since, is_announced);
        if is_new {
            self.tell_beats();
            self.shared.iter().for_each(|sharing| sharing.beats.hurry());
        }
    }

    /// Returns the number of slots that other drivers have free, as far as the chain and their last
    /// beats say, and the slowest of their pushes.
    pub(super) fn idle_elsewhere(&self) -> (usize, Duration) {
        let mut busy: BTreeMap<&DriverId, u64> = BTreeMap::new();
        let holders = self.run.state.items.iter().filter_map(|item| item.holder.as_ref());
        holders.for_each(|holder| *busy.entry(&holder.driver).or_default() += 1);
        let free = |driver, slots: u64| slots.saturating_sub(busy.get(driver).copied().unwrap_or_default());
        let others = self.run.via().into_iter().flat_map(Via::others);
        let idle = others.map(|(driver, slots, push)| (free(driver, slots), push)).filter(|(free, _)| *free > 0);
        idle.fold((0_usize, Duration::ZERO), |(all, slowest), (idle_slots, push)| {
            (all.saturating_add(usize::try_from(idle_slots).unwrap_or(usize::MAX)), slowest.max(push))
        })
    }

    /// Hands back claims that wait for a slot if nothing else is ready for drivers with free slots,
    /// and those can claim them sooner than they would start here.
    pub(super) fn share_ahead(&mut self) -> Result<(), Error> {
        let Some(shared) = self.shared.as_ref().filter(|shared| !shared.ahead.is_empty()) else { return Ok(()) };
        if self.schedule.eligible() > 0 {
            return Ok(());
        }
        let (idle, push) = self.idle_elsewhere();
        let long = shared.ahead.iter().filter(|(_, ahead)| ahead.since.elapsed() > push);
        let back: Vec<ItemIndex> = long.map(|(at, _)| *at).rev().take(idle).collect();
        let entries = self.hand_back(&back, "another driver has a free slot");
        if entries.is_empty() { Ok(()) } else { self.record(&entries) }
    }
}
