//! Ends the processes that an attempt left running.
//!
//! A worker's processes are found by their process group, by being our children where the kernel handed orphans to us, by
//! `HANDOFF_TASK` in their environment, and by a working directory in the attempt's folder. A process that escaped from its
//! group, cleared its environment and moved away is still our child on Linux, as long as this driver lives.

#[cfg(target_os = "linux")]
mod proc;

#[cfg(target_os = "linux")]
pub(super) use proc::{all_below, kill_all_below, run, threads};

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

/// The variable that every process of an attempt starts with, and that says of which.
pub(super) const VARIABLE: &str = "HANDOFF_TASK";

/// How long [`end`] waits for killed processes to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it waits for the group alone: a zombie may be held by a parent that escaped and is only found afterwards.
const GROUP_PATIENCE: Duration = Duration::from_millis(250);

/// Whether orphans below us become our children.
static ADOPTING: AtomicBool = AtomicBool::new(false);

/// The main processes of the attempts that run now; each is the leader of its process group.
static MAINS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes orphans below this process its children, so that none can hide by leaving its group; does nothing but on Linux.
///
/// It is a property of the whole process, for the program to decide, not for the library.
pub fn become_subreaper() {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        ADOPTING.store(true, Ordering::SeqCst);
    }
}

/// A main process that runs; its group is killed if this is dropped before [`Main::ended`].
#[derive(Debug)]
pub(super) struct Main {
    pid: Pid,
    ended: bool,
}

impl Main {
    /// Starts an attempt's main process, which must become the leader of a group of its own, and notes that it runs.
    ///
    /// Nothing is looked for and ended meanwhile: between fork and exec the new process would pass for an orphan.
    pub(super) fn start<T, E>(spawn: impl FnOnce() -> Result<(T, Pid), E>) -> Result<(T, Self), E> {
        mains(|mains| {
            let (child, pid) = spawn()?;
            mains.insert(pid.as_raw_nonzero().get());
            Ok((child, Self { pid, ended: false }))
        })
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
        mains(|mains| mains.remove(&self.pid.as_raw_nonzero().get()));
    }
}

/// Where what an attempt left is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// In the attempt's process group, and outside of it.
    Group(i32),
    /// Among what fell to us from a supervisor that died: as all others live below theirs, whatever falls to us is ended.
    Fallen,
    /// Of a dead driver, whose group's number may be another's by now.
    Stranded,
}

/// Kills what is left of an attempt and waits until it is gone; returns how many processes that were outside the group.
///
/// To be called when the main process has been waited for and before anything looks at the worktree. Never kills this
/// process, its ancestors, or what belongs to another attempt. A process that cannot be killed is left after a few seconds.
pub fn end(left: Left, attempt_dir: &Path) -> usize {
    let deadline = Instant::now() + PATIENCE;
    if let Left::Group(group) = left
        && let Some(group) = Pid::from_raw(group).filter(|_| group > 1)
    {
        end_group(group, Instant::now() + GROUP_PATIENCE);
    }
    #[cfg(target_os = "linux")]
    return proc::end_escaped(attempt_dir, left, deadline);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_dir;
        0
    }
}

/// Returns whether a process of a dead driver's attempt runs that [`end`] would end; never on a system on which it finds none.
pub fn are_left(attempt_dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    return mains(|running| proc::are_left(attempt_dir, running));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_dir;
        false
    }
}

/// Kills a process group until nothing is left of it; its zombies that became our children are reaped.
fn end_group(group: Pid, deadline: Instant) {
    while rustix::process::kill_process_group(group, Signal::KILL) != Err(Errno::SRCH) && Instant::now() < deadline {
        while let Ok(Some(_)) = rustix::process::waitpgid(group, WaitOptions::NOHANG) {}
        if rustix::process::test_kill_process_group(group) == Err(Errno::SRCH) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn mains<T>(change: impl FnOnce(&mut BTreeSet<i32>) -> T) -> T {
    change(&mut MAINS.lock().unwrap_or_else(PoisonError::into_inner))
}
