//! Resource limits of an attempt.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Resource limits of an attempt; `None` means the machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Memory of all processes together, in bytes.
    pub memory: Option<u64>,
    /// Processes at a time, including threads where the kernel counts them.
    pub processes: Option<u64>,
    /// Processor time of each process, in seconds.
    pub cpu_time: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Size of each written file, in bytes.
    pub file_size: Option<u64>,
    /// Disk space of worktree, temporary files and home, in bytes.
    pub disk: Option<u64>,
    /// Standard output and error, in bytes.
    pub output: Option<u64>,
}

/// An exceeded resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exceeded {
    /// Memory.
    Memory(u64),
    /// Processes.
    Processes(u64),
    /// Disk space.
    Disk(u64),
    /// Free space of the file system, of which so much has to stay.
    Free(u64),
    /// Standard output and error.
    Output(u64),
    /// The time without a sign of life of its driver, in milliseconds.
    Silence(u64),
}

impl Limits {
    /// Returns these limits, completed by others.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        self.with(others, Option::or)
    }

    /// Returns the lower of each two limits.
    #[must_use]
    pub fn at_most(self, others: Self) -> Self {
        self.with(others, |own, other| own.into_iter().chain(other).min())
    }

    /// Combines each two limits.
    fn with(self, others: Self, make: fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        Self {
            memory: make(self.memory, others.memory),
            processes: make(self.processes, others.processes),
            cpu_time: make(self.cpu_time, others.cpu_time),
            open_files: make(self.open_files, others.open_files),
            file_size: make(self.file_size, others.file_size),
            disk: make(self.disk, others.disk),
            output: make(self.output, others.output),
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(most) => write!(f, "used more than {most} bytes of memory"),
            Self::Processes(most) => write!(f, "had more than {most} processes"),
            Self::Silence(most) => write!(f, "was ended, because its driver did not reach the remote for {most} ms"),
            Self::Disk(most) => write!(f, "filled more than {most} bytes of the disk"),
            Self::Free(least) => write!(f, "left less than {least} bytes of the disk free"),
            Self::Output(most) => write!(f, "wrote more than {most} bytes to its output"),
        }
    }
}
