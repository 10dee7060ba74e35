//! Drivers whose pushes take different times, in a simulation of the rules by which they push.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use git_handoff::model::driver::DriverId;
use git_handoff::run::operate::line::{Line, Wait, is_slower};
use git_handoff::run::operate::pace::Pace;

/// The step of the simulated time.
const STEP: Duration = Duration::from_millis(5);

/// How long attempts take: the time between a push and the next results.
const WORK: Duration = Duration::from_millis(200);

/// The refs of the remote.
struct Remote {
    /// The driver of each entry.
    entries: Vec<usize>,
    /// The last beat of each driver: its number, and since when the driver waits.
    beats: Vec<(u32, Option<Instant>)>,
}

/// A call that a driver waits for.
#[derive(Clone, Copy)]
enum Call {
    Read,
    /// A push upon so many entries; whether it was accepted once it arrived.
    Push(usize, Option<bool>),
}

struct Simulated {
    push: Duration,
    pace: Pace,
    line: Line,
    /// The number of entries that it read, and of beats of each driver.
    entries: usize,
    beats: Vec<u32>,
    last_read: Instant,
    call: Option<(Instant, Call)>,
    since: Option<Instant>,
    /// Since when its beats say that it waits, and when the beat arrives.
    announced: Option<(Instant, Instant)>,
    next: Instant,
    waits: Vec<Duration>,
    lost: usize,
}

impl Simulated {
    fn new(push: u64, all: usize, now: Instant) -> Self {
        Self {
            push: Duration::from_millis(push),
            pace: Pace::new(Duration::ZERO),
            line: Line::default(),
            entries: 0,
            beats: vec![0; all],
            last_read: now,
            call: None,
            since: None,
            announced: None,
            next: now,
            waits: Vec::new(),
            lost: 0,
        }
    }
}

/// A remote and its drivers.
struct World {
    now: Instant,
    ids: Vec<DriverId>,
    remote: Remote,
    drivers: Vec<Simulated>,
}

impl World {
    fn new(pushes: &[u64]) -> Self {
        let (now, all) = (Instant::now(), pushes.len());
        Self {
            now,
            ids: (1..=all).map(|at| DriverId::from_random([u8::try_from(at).unwrap(); 16])).collect(),
            remote: Remote { entries: Vec::new(), beats: vec![(0, None); all] },
            drivers: pushes.iter().map(|push| Simulated::new(*push, all, now)).collect(),
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            (0..self.drivers.len()).for_each(|at| self.step(at));
            self.now += STEP;
        }
    }

    fn step(&mut self, at: usize) {
        let now = self.now;
        if self.drivers[at].announced.is_some_and(|(_, arrives)| arrives <= now) {
            let since = self.drivers[at].announced.take().map(|(since, _)| since);
            self.remote.beats[at] = (self.remote.beats[at].0 + 1, since);
        }
        match self.drivers[at].call {
            Some((ends, Call::Push(upon, None))) if ends <= now + self.drivers[at].push / 2 => {
                let is_won = upon == self.remote.entries.len();
                if is_won {
                    self.remote.entries.push(at);
                }
                self.drivers[at].call = Some((ends, Call::Push(upon, Some(is_won))));
            }
            Some((ends, call)) if ends <= now => {
                self.drivers[at].call = None;
                match call {
                    Call::Read => self.read(at, true),
                    Call::Push(_, is_won) => self.judge(at, is_won == Some(true)),
                }
            }
            Some(_) => {}
            None => self.act(at),
        }
    }

    /// Decides what a driver does that waits for no answer.
    fn act(&mut self, at: usize) {
        let (now, all) = (self.now, self.drivers.len());
        let slowest = self.drivers.iter().map(|driver| driver.push).max().unwrap();
        let fastest = self.drivers.iter().map(|driver| driver.push).min().unwrap();
        let one = &mut self.drivers[at];
        if one.since.is_none() && one.next <= now {
            one.since = Some(now);
        }
        let Some(since) = one.since else { return };
        let patience = one.pace.push_time() * u32::try_from(1.max(all / 4)).unwrap();
        let is_announced = one.pace.was_too_late() && is_slower(one.push, fastest) && now - since > patience;
        if is_announced && self.remote.beats[at].1 != Some(since) && one.announced.is_none() {
            one.announced = Some((since, now + one.push));
        }
        one.line.set_own(Some(since), is_announced);
        if !one.pace.due(now, all, one.line.is_first()).max(one.line.due(now)).is_zero() {
            return;
        }
        let has_to_read = one.line.leaves_room(now)
            || one.pace.awaits_turn(now, all)
            || (!one.pace.is_turn() && now - one.last_read > slowest);
        let (time, call) =
            if has_to_read { (one.push / 2, Call::Read) } else { (one.push, Call::Push(one.entries, None)) };
        one.call = Some((now + time, call));
    }

    /// Records the end of a read, or of the one after a lost push.
    fn read(&mut self, at: usize, is_at_turn: bool) {
        let (now, pushes) = (self.now, self.drivers.iter().map(|driver| driver.push).collect::<Vec<_>>());
        let one = &mut self.drivers[at];
        one.last_read = now;
        one.pace.read(one.push / 2);
        one.line.read(now);
        let new = &self.remote.entries[one.entries..];
        let is_new = !new.is_empty();
        for author in new.iter().filter(|author| **author != at) {
            one.pace.saw_others(now);
            one.line.passed(&self.ids[*author]);
        }
        one.entries = self.remote.entries.len();
        for (other, (number, since)) in self.remote.beats.iter().enumerate().filter(|(other, _)| *other != at) {
            if std::mem::replace(&mut one.beats[other], *number) != *number {
                let wait = since.map(|since| Wait { since, push: pushes[other] });
                one.line.heard(&self.ids[other], wait);
            }
        }
        one.line.choose(now, one.push, Duration::from_secs(15));
        let wait = match self.remote.entries.last() {
            _ if one.line.is_first() => Duration::ZERO,
            Some(last) if one.pace.is_contended(now, self.ids.len()) => {
                one.pace.turn(self.ids.iter(), &self.ids[at], &self.ids[*last])
            }
            _ => Duration::ZERO,
        };
        if (is_new && !one.line.is_first()) || !is_at_turn {
            one.pace.await_turn(now, wait);
        } else {
            one.pace.begin_turn();
        }
    }

    /// Records the answer of a push.
    fn judge(&mut self, at: usize, is_won: bool) {
        let now = self.now;
        let one = &mut self.drivers[at];
        one.pace.pushed(now, one.push, !is_won);
        if !is_won {
            one.lost += 1;
            return self.read(at, false);
        }
        one.line.pushed(now);
        one.waits.push(now - one.since.take().unwrap());
        one.line.set_own(None, false);
        (one.next, one.announced) = (now + WORK, None);
        one.entries += 1;
    }
}

/// A minute of drivers that have something to push all the time.
fn minute(pushes: &[u64]) -> World {
    let mut world = World::new(pushes);
    world.run(Duration::from_secs(60));
    world
}

/// With pushes that take 1 : 10, no result waits longer than three times the number of drivers
/// times the slowest push, and each driver gets its turns.
#[test]
fn no_result_waits_for_ever_although_others_are_nearer() {
    let slower = [&[50, 500][..], &[50, 50, 50, 500], &[50, 500, 500, 500], &[20, 100, 400]];
    // Drivers that are hardly slower get no room, and take turns.
    let alike = [&[50; 8][..], &[100, 140], &[50, 70, 70, 70], &[60, 75, 85], &[50, 55, 60, 65, 70, 70, 70, 70]];
    for pushes in slower.into_iter().chain(alike) {
        let world = minute(pushes);
        let slowest = Duration::from_millis(*pushes.iter().max().unwrap());
        let bound = slowest * u32::try_from(3 * pushes.len()).unwrap();
        for (push, driver) in pushes.iter().zip(&world.drivers) {
            let pending = driver.since.map(|since| world.now - since);
            let longest = driver.waits.iter().copied().chain(pending).max().unwrap();
            let wins = driver.waits.len();
            assert!(longest <= bound && wins >= 3, "{pushes:?}: {push} ms waited {longest:?}, {wins} wins");
        }
    }
}

/// Where all push alike, the rules for slow drivers cost nothing: most pushes are accepted.
#[test]
fn equal_drivers_lose_few_pushes() {
    let world = minute(&[50; 8]);
    let won: usize = world.drivers.iter().map(|driver| driver.waits.len()).sum();
    let lost: usize = world.drivers.iter().map(|driver| driver.lost).sum();
    assert!(lost * 10 <= (won + lost) * 3, "{lost} of {} lost", won + lost);
}
