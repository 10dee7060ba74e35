//! A time in entries: RFC 3339, UTC, milliseconds.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

use super::words::as_text;

/// The epoch.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// The format.
const SPELT: &str = "2026-06-04T02:00:00.000Z";

/// Milliseconds since 1970-01-01T00:00:00Z, written `2026-06-04T02:00:00.000Z`, without leap
/// seconds. Formatting supports the years 0 to 9999; parsing refuses those before 1970, which
/// commits cannot express.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment(i64);

as_text!(Moment);

impl Moment {
    /// Wraps milliseconds since the epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the epoch.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down, as in commits.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Adds milliseconds.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis))
    }

    /// Subtracts milliseconds.
    #[must_use]
    pub fn minus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_sub_unsigned(millis))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Avoids the crate's timestamp type, which ends a day before the year 9999 does.
        let time = EPOCH.checked_add(SignedDuration::from_millis(self.0)).map_err(|_| fmt::Error)?;
        if time.year() < 0 {
            return Err(fmt::Error);
        }
        write!(f, "{time:.3}Z")
    }
}

impl FromStr for Moment {
    type Err = BadMoment;

    fn from_str(text: &str) -> Result<Self, BadMoment> {
        let read = || {
            let time: DateTime = text.strip_suffix('Z').filter(|_| text.len() == SPELT.len())?.parse().ok()?;
            let moment = Self(i64::try_from(time.duration_since(EPOCH).as_millis()).ok()?);
            // Accepts only the canonical form.
            (time.year() >= 1970 && moment.to_string() == text).then_some(moment)
        };
        read().ok_or_else(|| BadMoment(text.to_owned()))
    }
}

/// A text that is not a time in this format.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a time like 2026-06-04T02:00:00.000Z")]
pub struct BadMoment(String);
