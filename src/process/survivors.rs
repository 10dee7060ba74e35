//! Kills processes that an attempt left running.
//!
//! A supervisor kills all processes below it. Without one, processes are found by their group, by
//! `HANDOFF_TASK` in their environment, and by a working directory in the attempt's folder; their
//! descendants are killed as well.

#[cfg(target_os = "linux")]
mod proc;

#[cfg(target_os = "linux")]
pub(super) use proc::{descendants, kill_all_below, threads};

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// The environment variable that names the attempt of a process.
pub(crate) const VARIABLE: &str = "HANDOFF_TASK";

/// Returns the task file of an attempt's folder, which [`VARIABLE`] names.
pub(crate) fn task_file(attempt_dir: &Path) -> PathBuf {
    attempt_dir.join("task.json")
}

/// How long [`end`] waits for killed processes.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(5);

/// How long [`end_group`] waits for the group: a parent outside of it may hold a zombie.
const GROUP_PATIENCE: Duration = Duration::from_millis(250);

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

/// Kills other processes marked as the attempt's, and their descendants. Returns their number.
/// Linux only.
///
/// Call this after waiting for the main process and before reading the worktree. Never kills this
/// process or its ancestors. Gives up on a process that cannot be killed after a few seconds.
pub fn end(attempt_dir: &Path) -> usize {
    #[cfg(target_os = "linux")]
    return proc::end(attempt_dir, Instant::now() + PATIENCE);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_dir;
        0
    }
}

/// Returns true if there is a process that [`end`] would kill.
pub fn are_left(attempt_dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return proc::are_left(attempt_dir);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_dir;
        false
    }
}

/// Kills a process group until it is empty, and reaps zombies that became our children.
pub(super) fn end_group(group: Pid) {
    let deadline = Instant::now() + GROUP_PATIENCE;
    while rustix::process::kill_process_group(group, Signal::KILL) != Err(Errno::SRCH) && Instant::now() < deadline {
        while let Ok(Some(_)) = rustix::process::waitpgid(group, WaitOptions::NOHANG) {}
        if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
