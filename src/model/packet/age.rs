//! Durations as written and displayed.

use std::fmt;
use std::str::FromStr;

/// A duration, written `48h` and displayed `48 h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Age {
    seconds: u64,
}

impl Age {
    /// Creates a duration of hours.
    pub fn hours(hours: u64) -> Self {
        Self::seconds(hours.saturating_mul(3600))
    }

    /// Creates a duration of seconds.
    pub fn seconds(seconds: u64) -> Self {
        Self { seconds }
    }

    /// Returns milliseconds.
    pub fn millis(self) -> u64 {
        self.seconds.saturating_mul(1000)
    }

    /// Formats to the minute, for comparison with a limit in hours.
    pub fn exact(self) -> String {
        let (hours, minutes, seconds) = (self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60);
        match (hours, minutes, seconds) {
            (0, _, _) => self.to_string(),
            (_, 0, 0) => format!("{hours} h"),
            (_, 0, _) => format!("{hours} h {seconds} s"),
            (..) => format!("{hours} h {minutes} min"),
        }
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            0..60 => write!(f, "{} s", self.seconds),
            60..3600 => write!(f, "{} min", self.seconds / 60),
            _ => write!(f, "{} h", self.seconds / 3600),
        }
    }
}

impl FromStr for Age {
    type Err = BadAge;

    fn from_str(text: &str) -> Result<Self, BadAge> {
        let bad = || BadAge(text.to_owned());
        let mut seconds: u64 = 0;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            let unit_end = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |at| digits + at);
            let unit = match &rest[digits..unit_end] {
                "s" => 1,
                "m" | "min" => 60,
                "h" => 3600,
                "d" => 86_400,
                "w" => 7 * 86_400,
                _ => return Err(bad()),
            };
            seconds = number.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(bad)?;
            rest = &rest[unit_end..];
        }
        if seconds == 0 { Err(bad()) } else { Ok(Self { seconds }) }
    }
}

/// A text that is not a duration.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an age like 48h, 90m or 2d")]
pub struct BadAge(String);
