//! A moment as entries write it: RFC 3339, UTC, milliseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z, written `2026-06-04T02:00:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment(i64);

impl Moment {
    /// Wraps milliseconds since the epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the epoch.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, rounded down, as commits date themselves.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns this moment and `millis` more.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add_unsigned(millis))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stamp = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{stamp:.3}")
    }
}

impl FromStr for Moment {
    type Err = BadMoment;

    fn from_str(text: &str) -> Result<Self, BadMoment> {
        let bad = || BadMoment(text.to_owned());
        let stamp: jiff::Timestamp = text.parse().map_err(|_| bad())?;
        let moment = Self(stamp.as_millisecond());
        // Only one spelling of a moment is canonical.
        if moment.to_string() == text { Ok(moment) } else { Err(bad()) }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that is not a moment as this format writes it.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a time like 2026-06-04T02:00:00.000Z")]
pub struct BadMoment(String);
