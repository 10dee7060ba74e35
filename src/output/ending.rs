//! How a command ends.

#[cfg(feature = "mcp")]
use super::interrupt;

/// The exit status of a command that completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Done.
    Done,
    /// Refused, nothing changed; reported on standard output.
    Refused,
    /// A check failed.
    CheckFailed,
    /// A run is settled or intact, but not every item is done and green.
    NotAllDone,
    /// There is nothing to resume from.
    Critical,
    /// Interrupted; the run can be continued.
    Interrupted,
}

impl Ending {
    /// Returns a channel that becomes true at the first termination signal, such as Ctrl-C.
    #[cfg(feature = "mcp")]
    pub(crate) fn requested() -> tokio::sync::watch::Receiver<bool> {
        interrupt::watch()
    }

    /// Combines two results: a failed check outweighs an unfinished run.
    pub(crate) fn or_worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, other) | (Self::NotAllDone, other @ Self::CheckFailed) => other,
            (before, _) => before,
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::CheckFailed => 3,
            Self::NotAllDone | Self::Critical => 4,
            Self::Interrupted => 130,
        }
    }
}
