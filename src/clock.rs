//! The only reader of the system's clock.

use std::time::{SystemTime, UNIX_EPOCH};

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
