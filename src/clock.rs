//! The only reader of the system's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::model::time::Moment;

/// A source of the current time.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The system's clock.
    System,
    /// A fixed moment, for tests. Entries written under it record that.
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

    /// Returns true if the clock is pinned.
    pub fn is_pinned(self) -> bool {
        matches!(self, Self::Pinned(_))
    }
}

/// Returns the time since the machine started, including suspended time.
pub fn since_boot() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), nanos)
}

/// A monotonic clock for waits, so that no correction of the system clock prolongs them.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    began: Instant,
    at: Moment,
}

impl Steady {
    /// Starts at the current time of `clock`.
    pub fn new(clock: Clock) -> Self {
        Self { began: Instant::now(), at: clock.now() }
    }

    /// Returns the start plus the elapsed time.
    pub fn now(&self) -> Moment {
        self.at.plus_millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}
