//! Drivers of a shared run, and the loss of their attempts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::digest::hex;
use super::words::words;

/// The number of hex digits of a driver's id.
const DIGITS: usize = 32;

/// The most bytes of a text that a driver gives about itself.
pub const MAX_TEXT: usize = 255;

/// The shortest permitted interval between two beats, in milliseconds.
pub const MIN_HEARTBEAT: u64 = 100;

/// The longest permitted interval between two beats, in milliseconds.
pub const MAX_HEARTBEAT: u64 = 3_600_000;

/// The longest permitted silence before a driver counts as lost, in milliseconds.
pub const MAX_LOST_AFTER: u64 = 30 * 86_400_000;

/// The least number of intervals after which a driver may count as lost.
pub const MIN_BEATS_UNTIL_LOST: u64 = 4;

/// The time for a command to end after a request, before it is killed.
pub const GRACE: Duration = Duration::from_secs(2);

/// The id of one process that drives a run: 32 hex digits, chosen at random by the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DriverId(String);

impl DriverId {
    /// Parses an id, or returns `None` if the text is not 32 lowercase hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == DIGITS && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
            .then(|| Self(text.to_owned()))
    }

    /// Returns the id of these random bytes.
    pub fn from_random(random: [u8; DIGITS / 2]) -> Self {
        Self(hex(&random))
    }

    /// Returns all digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first eight digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..8]
    }
}

impl fmt::Display for DriverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DriverId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no id of a driver")))
    }
}

words! {
    word
    /// The reason why an attempt was taken from its driver.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Because {
        /// The driver was silent for the time that `run.shared` names.
        Silent = "silent",
        /// An operator or the engine that started the driver said so.
        Told = "told",
        /// The driver's successor in the same clone holds its lock.
        Lock = "lock",
        /// The driver's key was dismissed.
        Dismissed = "dismissed",
    }
}

/// The fields of `run.shared`: the run is driven through a remote from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunShared {
    /// The time between two beats of a driver, in milliseconds.
    pub heartbeat: u64,
    /// The silence after which a driver counts as lost, in milliseconds.
    pub lost_after: u64,
}

impl RunShared {
    /// Returns the times of a shared run, in milliseconds.
    pub const fn new(heartbeat: u64, lost_after: u64) -> Self {
        Self { heartbeat, lost_after }
    }

    /// Returns true if the times are long enough to tell a lost driver from a slow one, and short
    /// enough that a lost one is noticed.
    pub fn is_sound(&self) -> bool {
        let is_bounded = (MIN_HEARTBEAT..=MAX_HEARTBEAT).contains(&self.heartbeat) && self.lost_after <= MAX_LOST_AFTER;
        is_bounded && self.lost_after / MIN_BEATS_UNTIL_LOST >= self.heartbeat
    }
}

/// Parses a text that a driver gives about itself, such as the name of its host.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    match text {
        Some(text) if text.len() > MAX_TEXT => {
            Err(serde::de::Error::custom(format!("a text of {} bytes; at most {MAX_TEXT} are allowed", text.len())))
        }
        text => Ok(text),
    }
}
