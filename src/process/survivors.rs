//! Kills processes that an attempt left running.
//!
//! A supervisor kills all processes below it. If it was killed, processes are found by
//! `HANDOFF_TASK` in their environment, and by a working directory in the attempt's folder; their
//! descendants are killed as well.

mod proc;

pub use proc::{are_left, end};
pub(super) use proc::{descendants, kill_all_below, threads, wait_for};

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

/// The environment variable that names the attempt of a process.
pub(crate) const VARIABLE: &str = "HANDOFF_TASK";

/// Returns the task file of an attempt's folder, which [`VARIABLE`] names.
pub(crate) fn task_file(attempt_dir: &Path) -> PathBuf {
    attempt_dir.join("task.json")
}

/// The main process of an attempt. Its group is killed if this is dropped before [`Main::ended`].
#[derive(Debug)]
pub(super) struct Main {
    pid: Pid,
    ended: bool,
}

impl Main {
    /// Guards a process that becomes the leader of its own group.
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, ended: false }
    }

    /// Returns its process id, which is also its group's.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the group, or to the process if it leads none yet. Ignores a missing
    /// process.
    pub(super) fn signal(&self, signal: Signal) {
        if rustix::process::kill_process_group(self.pid, signal) == Err(Errno::SRCH) {
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }

    /// Records that it was waited for.
    pub(super) fn ended(mut self) {
        self.ended = true;
    }
}

impl Drop for Main {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(Signal::KILL);
        }
    }
}
