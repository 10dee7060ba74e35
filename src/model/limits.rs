//! How much one attempt may use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bounds on what one attempt uses; none leaves it to the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// The memory of all its processes together, in bytes.
    pub memory: Option<u64>,
    /// Its processes at a time, threads counted where the kernel counts them.
    pub processes: Option<u64>,
    /// The processor time of each process, in seconds.
    pub cpu_time: Option<u64>,
    /// The open files of each process.
    pub open_files: Option<u64>,
    /// The size of each file that it writes, in bytes.
    pub file_size: Option<u64>,
    /// What its worktree, its temporary files and its home take on the disk, in bytes.
    pub disk: Option<u64>,
    /// What it writes to its standard output and error, in bytes.
    pub output: Option<u64>,
}

/// What an attempt used more of than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exceeded {
    /// Memory.
    Memory(u64),
    /// Processes.
    Processes(u64),
    /// Room on the disk.
    Disk(u64),
    /// Nobody knows how much room on the disk or memory, of so much: it could not be looked at, time and again.
    Hidden(u64),
    /// Standard output and error.
    Output(u64),
    /// Files that it has open.
    OpenFiles(u64),
}

impl Limits {
    /// Returns these, and of others those that these leave open.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        self.with(others, Option::or)
    }

    /// Returns these, each no higher than others have it.
    #[must_use]
    pub fn at_most(self, others: Self) -> Self {
        self.with(others, |own, other| own.into_iter().chain(other).min())
    }

    /// Makes each of one of ours and one of others.
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
            Self::Disk(most) => write!(f, "filled more than {most} bytes of the disk"),
            Self::Hidden(most) => {
                write!(
                    f,
                    "kept what it has on the disk or in memory from being counted, of which it may have {most} bytes"
                )
            }
            Self::OpenFiles(most) => write!(f, "had more than {most} files open"),
            Self::Output(most) => write!(f, "wrote more than {most} bytes to its output"),
        }
    }
}
