//! Runs a process between the driver and one command that all processes of the command stay below.
//!
//! It is a child subreaper: a process that leaves its group, session and environment is still below
//! it. It kills remaining processes before it reports the command's end, and kills everything when
//! the driver goes away. The driver talks to it over a socket, its standard input:
//!
//! | from the driver | bytes |
//! |---|---|
//! | confinement, environment and limits | JSON, with its length as below |
//! | standard input | 8 bytes of length, big-endian, and the bytes; `NOTHING` for `/dev/null` |
//! | ask the command to end | `ASK` |
//! | end everything now | `END`, or the end of the stream |
//!
//! The supervisor answers once, with a `Report`. Its arguments and output are the command's. Its
//! environment has only the attempt's name, and its working directory is `/`; the command's
//! settings arrive by message (`starting`), so that they do not affect our programs. A confinement
//! process between the two gets the same message ([`confine`](super::confine)).

mod cgroup;
mod confined;
mod deleted_files;
mod exec_setup;
pub(super) mod serving;
mod watching;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::entry::Exit;
use crate::model::limits::Exceeded;

pub use serving::serve;

/// The first argument that makes the program a supervisor.
pub const ARGUMENT: &str = "supervise-attempt";

/// The length of a standard input that is `/dev/null`.
pub(super) const NOTHING: u64 = u64::MAX;
/// Ends the command with `SIGTERM` to its group.
pub(super) const ASK: u8 = b'T';
/// Kills everything now.
pub(super) const END: u8 = b'K';

/// How long to wait for processes that cannot be killed; then the driver checks what is left.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A supervisor's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command could not be started, with the system's error number.
    NotStarted(i32),
    /// The command ended like this, and no process is left.
    Ended(Exit),
    /// The command ended like this, or not at all, and a process could not be killed.
    Left(Option<Exit>),
    /// The command could not be confined and was not started, with the reason.
    Unconfined(String),
    /// The command exceeded a limit and was killed.
    Exceeded(Exceeded),
}

/// The most bytes of a report.
pub(super) const LONGEST_REPORT: usize = 2 << 10;

impl Report {
    /// Formats it as a line.
    pub(super) fn write(&self) -> String {
        let report = match self {
            Self::Unconfined(why) => &Self::Unconfined(why.chars().take(LONGEST_REPORT / 8).collect()),
            other => other,
        };
        serde_json::to_string(report).expect("numbers and texts serialise") + "\n"
    }

    /// Parses the output of [`Report::write`], or returns `None` if it is incomplete because the
    /// supervisor died.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes.strip_suffix(b"\n")?).ok()
    }
}
