//! A process between the driver and one command, under which everything that the command starts stays.
//!
//! It is a sub-reaper: whoever leaves its group, its session and its environment is still below it, and of no other attempt.
//! It ends what is left before it says how the command ended, and ends everything when the driver goes away. The two talk
//! over a socket, which is the supervisor's standard input:
//!
//! | from the driver | bytes |
//! |---|---|
//! | how it is confined, what it is started with, and how much it may use | JSON, as the next row has it |
//! | what the command reads | its length in 8 bytes, most significant first, and the bytes; `NOTHING` for `/dev/null` |
//! | ask the command to end | `ASK` |
//! | end everything now | `END`, or the end of the stream |
//!
//! The supervisor answers once, with a `Report`. Its arguments are the command's, and its output too, so that it costs no more than a
//! start of this program and what is said of a command is said of it. Its environment is empty but for the attempt that it belongs to,
//! and its working directory is `/`: what the command is given (`starting`) makes nothing of ours run what the command chose. What
//! confines the command stands between the two, and is told the same in the same way ([`confine`](super::sandbox::confine)).

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(target_os = "linux")]
mod nameless;
#[cfg(target_os = "linux")]
pub(super) mod serving;
#[cfg(target_os = "linux")]
mod starting;
#[cfg(target_os = "linux")]
mod watching;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::entry::Exit;
use crate::model::limits::Exceeded;

#[cfg(target_os = "linux")]
pub use serving::serve;

/// The first argument by which the program knows that it is to be a supervisor.
pub const ARGUMENT: &str = "supervise-attempt";

/// The length of a standard input that is `/dev/null`.
pub(super) const NOTHING: u64 = u64::MAX;
/// Asks the command to end, by `SIGTERM` to its group.
pub(super) const ASK: u8 = b'T';
/// Ends everything now.
pub(super) const END: u8 = b'K';

/// How long what cannot be killed is waited for; the driver looks at what is left then.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What a supervisor says at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command could not be started, for a reason that the system numbers.
    NotStarted(i32),
    /// The command ended so, and nothing of it is left.
    Ended(Exit),
    /// The command ended so, or not at all; something below it could not be ended.
    Left(Option<Exit>),
    /// The command could not be confined as it is to be, and was not started; the sentence says why.
    Unconfined(String),
    /// It was ended because it used more than it may.
    Exceeded(Exceeded),
}

/// The most bytes of a report.
pub(super) const LONGEST_REPORT: usize = 2 << 10;

impl Report {
    /// Writes it as a line.
    pub(super) fn write(&self) -> String {
        let report = match self {
            Self::Unconfined(why) => &Self::Unconfined(why.chars().take(LONGEST_REPORT / 8).collect()),
            other => other,
        };
        serde_json::to_string(report).expect("numbers and texts serialise") + "\n"
    }

    /// Reads what [`Report::write`] wrote, or returns `None` if the supervisor died before it had
    /// written all.
    pub(super) fn read(said: &[u8]) -> Option<Self> {
        serde_json::from_slice(said.strip_suffix(b"\n")?).ok()
    }
}
