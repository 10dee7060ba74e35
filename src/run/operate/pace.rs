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

/// The length of a turn, as a multiple of a read and a push: either may take longer than usual.
const TURN: (u32, u32) = (5, 4);

/// The most turns that a driver waits for before it pushes anyway.
pub const MOST_TURNS: u32 = 24;

/// The pushes of one driver, and those that it lost.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The shortest time between two pushes.
    interval: Duration,
    /// The end of the last push.
    last_push: Option<Instant>,
    /// The mean time of a push.
    mean: Duration,
    /// The mean time of a read, which comes before a push in each turn.
    mean_read: Duration,
    /// The mean time of a push and of a read, each once it was measured.
    measured: [Option<Duration>; 2],
    /// When another driver's entries were last read.
    foreign: Option<Instant>,
    /// When this driver's turn comes.
    turn: Option<Instant>,
    /// The number of turns since the last push.
    turns: u32,
    /// True if nothing new was read at this driver's turn.
    is_turn: bool,
}

impl Pace {
    /// Starts without any push.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            last_push: None,
            mean: FIRST_GUESS,
            mean_read: Duration::ZERO,
            measured: [None; 2],
            foreign: None,
            turn: None,
            turns: 0,
            is_turn: false,
        }
    }

    /// Returns the mean time of a push.
    pub fn push_time(&self) -> Duration {
        self.mean
    }

    /// Returns the time of a call, for other drivers: of a push or of a read, whichever is longer.
    ///
    /// It counts no guess, so that a slow driver does not seem fast for its first minutes.
    pub fn call_time(&self) -> Duration {
        self.measured.into_iter().flatten().max().unwrap_or(FIRST_GUESS)
    }

    /// Returns the length of a turn: of a read and a push.
    pub fn turn_time(&self) -> Duration {
        (self.mean + self.mean_read) * TURN.0 / TURN.1
    }

    /// Returns how long to wait before the next push, with so many drivers.
    pub fn gap(&self, now: Instant, drivers: usize) -> Duration {
        let Some(last) = self.last_push else { return Duration::ZERO };
        (last + self.shortest_gap(drivers)).saturating_duration_since(now)
    }

    /// Returns the time between the pushes of one of so many drivers.
    fn shortest_gap(&self, drivers: usize) -> Duration {
        let drivers = u32::try_from(drivers).unwrap_or(u32::MAX);
        self.interval.max(Duration::from_secs(1).saturating_mul(drivers) / DRIVERS_PER_SECOND)
    }

    /// Returns how long to wait before the next push: for the gap, or after a lost push for the
    /// turn, unless the others leave room for this driver.
    pub fn due(&self, now: Instant, drivers: usize, has_room: bool) -> Duration {
        let turn = self.turn.filter(|_| !has_room);
        let turn = turn.map_or(Duration::ZERO, |turn| turn.saturating_duration_since(now));
        self.gap(now, drivers).max(turn)
    }

    /// Records how long this driver waits for its turn, before it reads again. Without a wait the
    /// turn is now, upon what was just read.
    pub fn await_turn(&mut self, now: Instant, wait: Duration) {
        self.turns += 1;
        self.is_turn = wait.is_zero() || self.turns > MOST_TURNS;
        self.turn = Some(now + wait).filter(|_| !self.is_turn);
    }

    /// Returns true if the driver has to read before it may push, because others push as well.
    pub fn awaits_turn(&self, now: Instant, drivers: usize) -> bool {
        !self.is_turn && (self.turn.is_some() || self.is_contended(now, drivers))
    }

    /// Records that nothing new was read at this driver's turn.
    pub fn begin_turn(&mut self) {
        (self.turn, self.is_turn) = (None, true);
    }

    /// Returns true if nothing new was read at this driver's turn.
    pub fn is_turn(&self) -> bool {
        self.is_turn
    }

    /// Returns true if other drivers were faster since the last push.
    pub fn was_too_late(&self) -> bool {
        self.turns > 0
    }

    /// Records a push that took some time. After a lost one only the turn decides.
    pub fn pushed(&mut self, now: Instant, took: Duration, is_lost: bool) {
        self.last_push = (!is_lost).then_some(now);
        (self.turn, self.turns, self.is_turn) = (None, 0, false);
        self.mean = (self.mean * 3 + took.min(SLOWEST)) / 4;
        // A push that is lost ends early.
        self.measure(0, if is_lost { took.max(self.measured[0].unwrap_or_default()) } else { took });
    }

    /// Records a read that took some time.
    pub fn read(&mut self, took: Duration) {
        self.mean_read = (self.mean_read * 3 + took.min(SLOWEST)) / 4;
        self.measure(1, took);
    }

    fn measure(&mut self, at: usize, took: Duration) {
        let took = took.min(SLOWEST);
        let mean = &mut self.measured[at];
        *mean = Some(mean.map_or(took, |mean| (mean * 3 + took) / 4));
    }

    /// Records that entries of another driver were read.
    pub fn saw_others(&mut self, now: Instant) {
        self.foreign = Some(now);
    }

    /// Returns true if others pushed so recently that turns are worth their waits. A driver that
    /// pushes at every gap may have read nothing since its last push.
    pub fn is_contended(&self, now: Instant, drivers: usize) -> bool {
        let round = self.mean.saturating_mul(u32::try_from(drivers).unwrap_or(u32::MAX));
        let recent = round.max(self.shortest_gap(drivers)) * 2;
        self.foreign.is_some_and(|last| now.saturating_duration_since(last) < recent)
    }

    /// Returns how long `own` waits for its turn after an entry of the driver `last`.
    ///
    /// Drivers push in the order of their ids, each after the one before had its turn.
    pub fn turn<'a>(&self, drivers: impl Iterator<Item = &'a DriverId>, own: &DriverId, last: &DriverId) -> Duration {
        let (mut place, mut last_place, mut count) = (0, 0, 0_u32);
        for driver in drivers {
            place += u32::from(driver < own);
            last_place += u32::from(driver < last);
            count += 1;
        }
        let count = count.max(1);
        self.turn_time() * ((place + 2 * count - last_place - 1) % count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> DriverId {
        DriverId::from_random([n; 16])
    }

    #[test]
    fn drivers_follow_each_other_in_the_order_of_their_ids() {
        let pace = Pace { mean: Duration::from_millis(100), ..Pace::new(Duration::ZERO) };
        let all: Vec<DriverId> = (0..4).map(id).collect();
        let wait = |own: usize, last: usize| pace.turn(all.iter(), &all[own], &all[last]).as_millis();
        assert_eq!([wait(0, 3), wait(1, 3), wait(2, 3), wait(3, 3)], [0, 125, 250, 375]);
        assert_eq!([wait(2, 1), wait(3, 1), wait(0, 1), wait(1, 1)], [0, 125, 250, 375]);
        let mut pace = pace;
        pace.read(Duration::from_millis(40));
        assert_eq!(
            pace.turn(all.iter(), &all[2], &all[0]),
            Duration::from_micros(137_500),
            "a turn begins with a read"
        );
    }

    #[test]
    fn the_first_calls_say_how_slow_the_remote_is() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut pace = Pace::new(Duration::ZERO);
        assert_eq!(pace.call_time(), FIRST_GUESS);
        pace.pushed(start, ms(900), false);
        assert_eq!((pace.call_time(), pace.push_time()), (ms(900), ms(337) + Duration::from_micros(500)));
        pace.pushed(start, ms(400), true);
        assert_eq!(pace.call_time(), ms(900), "a lost push ends early");
        pace.pushed(start, ms(1300), true);
        assert_eq!(pace.call_time(), ms(1000));
        pace.read(ms(1400));
        assert_eq!(pace.call_time(), ms(1400));
    }

    #[test]
    fn the_first_push_goes_at_once_and_the_next_waits_for_the_gap() {
        let (start, mut pace) = (Instant::now(), Pace::new(Duration::from_millis(500)));
        assert_eq!(pace.gap(start, 8), Duration::ZERO);
        pace.pushed(start, Duration::from_millis(50), false);
        assert_eq!(pace.gap(start, 1), Duration::from_millis(500));
        assert_eq!(pace.gap(start + Duration::from_secs(1), 1), Duration::ZERO);
    }

    #[test]
    fn a_driver_reads_at_its_turn_while_others_push() {
        let (start, mut pace) = (Instant::now(), Pace::new(Duration::ZERO));
        assert!(!pace.awaits_turn(start, 8), "no other driver pushes");
        pace.saw_others(start);
        assert!(pace.awaits_turn(start, 8));
        pace.await_turn(start, Duration::from_millis(300));
        assert_eq!(pace.due(start, 8, false), Duration::from_millis(300));
        pace.begin_turn();
        assert!(!pace.awaits_turn(start, 8) && pace.due(start, 8, false).is_zero());
        pace.pushed(start, Duration::from_millis(100), true);
        assert!(pace.awaits_turn(start, 8), "the next push needs a turn of its own");
        let gap = start + Duration::from_millis(1100);
        assert!(pace.awaits_turn(gap, 8) && !pace.awaits_turn(gap, 2), "it pushes once a second, so it read nothing");
        (0..=MOST_TURNS).for_each(|_| pace.await_turn(start, Duration::from_millis(300)));
        assert!(!pace.awaits_turn(start, 8) && pace.due(start, 8, false).is_zero(), "it waited for enough turns");
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
                let next = (0..drivers.len())
                    .min_by_key(|at: &usize| pace.turn(drivers.iter(), &drivers[*at], &drivers[last]))
                    .expect("there are drivers");
                longest = longest.max(waited[next]);
                waited.iter_mut().for_each(|wait| *wait += push);
                waited[next] = 0;
                last = next;
            }
            assert!(longest <= 3 * 100 * push, "{longest} ms at {push} ms a push");
        }
    }
}
