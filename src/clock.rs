//! The only reader of the system's clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::model::time::Moment;

/// Where moments come from.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The system's clock.
    System,
    /// A fixed moment, for tests; entries made under it say so.
    Pinned(Moment),
}

impl Clock {
    /// Returns the present moment.
    pub fn now(self) -> Moment {
        match self {
            Self::Pinned(moment) => moment,
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Moment::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }

    /// Returns whether the clock is a pinned one.
    pub fn is_pinned(self) -> bool {
        matches!(self, Self::Pinned(_))
    }
}

/// A clock that begins at the present moment and is never put right: for waits, which no correction may prolong.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    began: Instant,
    at: Moment,
}

impl Steady {
    /// Begins at what `clock` says now.
    pub fn new(clock: Clock) -> Self {
        Self { began: Instant::now(), at: clock.now() }
    }

    /// Returns the moment that it began at, and what has passed since.
    pub fn now(&self) -> Moment {
        self.at.plus_millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}
