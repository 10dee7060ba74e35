//! Decides whether a driver of a shared run leaves room for another one: pure.
//!
//! The remote takes the push that arrives first, so a driver whose pushes are slow would lose every
//! race against a near one. The beats of a driver that was too late say since when it waits. The
//! others let the one pass that waits longest, for as long as a few of its pushes take.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::model::driver::DriverId;

/// The number of pushes of another driver that the room for it lasts: for a read, a push, and the
/// time until it knows that there is room.
const PUSHES: u32 = 3;

/// How much longer, as a fraction, the pushes of a driver take for which a faster one leaves room.
/// Drivers with equal pushes take turns.
const SLOWER: (u32, u32) = (3, 2);

/// The shortest time of a push that counts.
const FASTEST: Duration = Duration::from_millis(50);

/// Another driver that waits to push.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Since when, by this driver's clock.
    pub since: Instant,
    /// How long a push takes there.
    pub push: Duration,
}

/// Returns true if a driver with the first time of a push needs room from one with the second.
pub fn is_slower(push: Duration, than: Duration) -> bool {
    push * SLOWER.1 > than.max(FASTEST) * SLOWER.0
}

/// The drivers that wait to push.
#[derive(Clone, Debug, Default)]
pub struct Line {
    others: BTreeMap<DriverId, Wait>,
    /// Since when this driver has something to push.
    own: Option<Instant>,
    /// Whether the beats of this driver say so.
    is_announced: bool,
    room: Option<Room>,
}

/// The time for which this driver does not push.
#[derive(Clone, Debug)]
struct Room {
    driver: DriverId,
    until: Instant,
    /// When to read again meanwhile.
    look: Instant,
}

impl Line {
    /// Records what a new beat of another driver says.
    pub fn heard(&mut self, driver: &DriverId, wait: Option<Wait>) {
        match wait {
            Some(wait) => drop(self.others.insert(driver.clone(), wait)),
            None => drop(self.others.remove(driver)),
        }
    }

    /// Records that an entry of another driver was read: it no longer waits.
    pub fn passed(&mut self, driver: &DriverId) {
        self.others.remove(driver);
    }

    /// Forgets the drivers that do not live.
    pub fn retain(&mut self, lives: impl Fn(&DriverId) -> bool) {
        self.others.retain(|driver, _| lives(driver));
    }

    /// Sets since when this driver has something to push, and whether its beats say so.
    pub fn set_own(&mut self, since: Option<Instant>, is_announced: bool) {
        (self.own, self.is_announced) = (since, is_announced && since.is_some());
    }

    /// Returns true if the others leave room for this driver: it waits longest of all.
    pub fn is_first(&self) -> bool {
        let own = self.own.filter(|_| self.is_announced);
        own.is_some_and(|own| self.others.values().all(|other| own < other.since))
    }

    /// Chooses the driver to leave room for: the one with slower pushes that waits longest, if it
    /// waits longer than this driver. `longest` bounds the room.
    pub fn choose(&mut self, now: Instant, own_push: Duration, longest: Duration) {
        let slower = self
            .others
            .iter()
            .filter(|(_, wait)| self.own.is_none_or(|own| wait.since < own) && is_slower(wait.push, own_push));
        let first = slower.min_by_key(|(_, wait)| wait.since);
        let Some((driver, wait)) = first else {
            self.room = None;
            return;
        };
        if self.room.as_ref().is_some_and(|room| room.driver == *driver) {
            return;
        }
        let until = now + (wait.push.max(FASTEST) * PUSHES).min(longest);
        self.room = Some(Room { driver: driver.clone(), until, look: now + wait.push / 2 });
    }

    /// Returns how long this driver neither pushes nor reads.
    pub fn due(&self, now: Instant) -> Duration {
        let room = self.room.as_ref().filter(|room| now < room.until);
        room.map_or(Duration::ZERO, |room| room.look.min(room.until).saturating_duration_since(now))
    }

    /// Returns true as long as this driver leaves room for another one.
    pub fn leaves_room(&self, now: Instant) -> bool {
        self.room.as_ref().is_some_and(|room| now < room.until)
    }

    /// Records that the remote was read.
    pub fn read(&mut self, now: Instant) {
        if let Some(room) = &mut self.room {
            let push = self.others.get(&room.driver).map_or(FASTEST, |wait| wait.push);
            room.look = now + push / 2;
        }
    }

    /// Records that the remote took a push of this driver. A driver that did not use its room gets
    /// another one only after its next beat.
    pub fn pushed(&mut self, now: Instant) {
        if let Some(room) = self.room.take_if(|room| room.until <= now) {
            self.others.remove(&room.driver);
        }
    }
}
