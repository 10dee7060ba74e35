//! Ends the processes that an attempt left running.
//!
//! A supervisor ends all processes below it. Where there is none, or it was killed, processes are
//! found by their group, by `HANDOFF_TASK` in their environment, and by a working directory in the
//! attempt's folder; all below these are ended as well.

#[cfg(target_os = "linux")]
mod proc;

#[cfg(target_os = "linux")]
pub(super) use proc::{all_below, kill_all_below, threads};

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// The variable that every process of an attempt starts with, and that says of which.
pub(super) const VARIABLE: &str = "HANDOFF_TASK";

/// How long [`end`] waits for killed processes to be gone.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(5);

/// How long [`end_group`] waits for the group: a zombie may be held by a parent that left it.
const GROUP_PATIENCE: Duration = Duration::from_millis(250);

/// The main process of an attempt; its group is killed if this is dropped before [`Main::ended`].
#[derive(Debug)]
pub(super) struct Main {
    pid: Pid,
    ended: bool,
}

impl Main {
    /// Takes charge of a process that becomes the leader of a group of its own.
    pub(super) fn new(pid: Pid) -> Self {
        Self { pid, ended: false }
    }

    /// Returns its id, which is its group's.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the whole group, or to the process where it leads none yet; what is gone needs none.
    pub(super) fn signal(&self, signal: Signal) {
        if rustix::process::kill_process_group(self.pid, signal) == Err(Errno::SRCH) {
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }

    /// Notes that it was waited for.
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

/// Kills the processes outside of this one that say that they are an attempt's, and all below them;
/// returns how many. Finds none but on Linux.
///
/// To be called when the main process has been waited for and before the worktree is looked at.
/// Never kills this process or its ancestors. A process that cannot be killed is left after a few
/// seconds.
pub fn end(attempt_dir: &Path) -> usize {
    #[cfg(target_os = "linux")]
    return proc::end(attempt_dir, Instant::now() + PATIENCE);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_dir;
        0
    }
}

/// Returns true if a process runs that [`end`] would end.
pub fn are_left(attempt_dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return proc::are_left(attempt_dir);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_dir;
        false
    }
}

/// Kills a process group until nothing is left of it; its zombies that became our children are reaped.
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
