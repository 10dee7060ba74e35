//! Decides when a driver of a shared run pushes: pure.
//!
//! A remote accepts one of several concurrent pushes of a ref. Drivers that retry at once lose most
//! of their pushes, so they space them out, and take turns after a loss.

use std::time::{Duration, Instant};

use crate::model::driver::DriverId;

/// The time of a push before the first was measured.
const FIRST_GUESS: Duration = Duration::from_millis(150);

/// The longest time of a push that counts, so that one stalled push does not slow all turns.
const SLOWEST: Duration = Duration::from_secs(10);

/// The number of drivers that share one push a second.
const DRIVERS_PER_SECOND: u32 = 8;

/// The pushes of one driver, and those that it lost.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The shortest time between two pushes.
    interval: Duration,
    /// The end of the last push.
    last_push: Option<Instant>,
    /// The mean time of a push.
    mean: Duration,
    /// When another driver's entries were last read.
    foreign: Option<Instant>,
}

impl Pace {
    /// Starts without any push.
    pub fn new(interval: Duration) -> Self {
        Self { interval, last_push: None, mean: FIRST_GUESS, foreign: None }
    }

    /// Returns the mean time of a push.
    pub fn push_time(&self) -> Duration {
        self.mean
    }

    /// Returns how long to wait before the next push, with so many drivers.
    pub fn gap(&self, now: Instant, drivers: usize) -> Duration {
        let Some(last) = self.last_push else { return Duration::ZERO };
        let drivers = u32::try_from(drivers).unwrap_or(u32::MAX);
        let gap = self.interval.max(Duration::from_secs(1).saturating_mul(drivers) / DRIVERS_PER_SECOND);
        (last + gap).saturating_duration_since(now)
    }

    /// Records a push that took some time. After a lost one only the turn decides.
    pub fn pushed(&mut self, now: Instant, took: Duration, is_lost: bool) {
        self.last_push = (!is_lost).then_some(now);
        self.mean = (self.mean * 3 + took.min(SLOWEST)) / 4;
    }

    /// Records that entries of another driver were read.
    pub fn saw_others(&mut self, now: Instant) {
        self.foreign = Some(now);
    }

    /// Returns true if others pushed so recently that turns are worth their waits.
    pub fn is_contended(&self, now: Instant, drivers: usize) -> bool {
        let recent = self.mean.saturating_mul(2 * u32::try_from(drivers).unwrap_or(u32::MAX));
        self.foreign.is_some_and(|seen| now.saturating_duration_since(seen) < recent)
    }

    /// Returns how long `own` waits for its turn after an entry of the driver `last`.
    ///
    /// Drivers push in the order of their ids, each after the one before had the time of a push.
    pub fn turn<'a>(&self, drivers: impl Iterator<Item = &'a DriverId>, own: &DriverId, last: &DriverId) -> Duration {
        let (mut place, mut last_place, mut count) = (0, 0, 0_u32);
        for driver in drivers {
            place += u32::from(driver < own);
            last_place += u32::from(driver < last);
            count += 1;
        }
        let count = count.max(1);
        self.mean * ((place + 2 * count - last_place - 1) % count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> DriverId {
        DriverId::of([n; 16])
    }

    #[test]
    fn drivers_follow_each_other_in_the_order_of_their_ids() {
        let pace = Pace { mean: Duration::from_millis(100), ..Pace::new(Duration::ZERO) };
        let all: Vec<DriverId> = (0..4).map(id).collect();
        let wait = |own: usize, last: usize| pace.turn(all.iter(), &all[own], &all[last]).as_millis();
        assert_eq!([wait(0, 3), wait(1, 3), wait(2, 3), wait(3, 3)], [0, 100, 200, 300]);
        assert_eq!([wait(2, 1), wait(3, 1), wait(0, 1), wait(1, 1)], [0, 100, 200, 300]);
    }

    #[test]
    fn the_first_push_goes_at_once_and_the_next_waits_for_the_gap() {
        let (start, mut pace) = (Instant::now(), Pace::new(Duration::from_millis(500)));
        assert_eq!(pace.gap(start, 8), Duration::ZERO);
        pace.pushed(start, Duration::from_millis(50), false);
        assert_eq!(pace.gap(start, 1), Duration::from_millis(500));
        assert_eq!(pace.gap(start + Duration::from_secs(1), 1), Duration::ZERO);
    }

    /// A hundred drivers with pushes of 5 to 200 ms: a driver with something to push waits at most
    /// three rounds.
    #[test]
    fn no_driver_waits_longer_than_three_rounds() {
        for push in [5, 20, 50, 200_u32] {
            let drivers: Vec<DriverId> = (0..100).map(id).collect();
            let pace = Pace { mean: Duration::from_millis(u64::from(push)), ..Pace::new(Duration::ZERO) };
            let mut waited = vec![0_u32; drivers.len()];
            let (mut last, mut longest) = (0, 0);
            for _ in 0..1000 {
                let turn = |at: &usize| pace.turn(drivers.iter(), &drivers[*at], &drivers[last]);
                let next = (0..drivers.len()).min_by_key(turn).expect("there are drivers");
                longest = longest.max(waited[next]);
                waited.iter_mut().for_each(|wait| *wait += push);
                waited[next] = 0;
                last = next;
            }
            assert!(longest <= 3 * 100 * push, "{longest} ms at {push} ms a push");
        }
    }
}
