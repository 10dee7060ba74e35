//! A control group for one attempt, if this process may create one: the kernel then limits memory
//! and processes.
//!
//! The interface files are those of `Documentation/admin-guide/cgroup-v2.rst` of Linux.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::watching::OURS;
use crate::model::limits::{Exceeded, Limits};

/// The mount point of control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// The prefix of a group's name; the supervisor's process id follows.
const NAME: &str = "git-handoff-";

/// The group of one attempt. Dropping this removes it if it is empty.
pub(super) struct Cgroup {
    dir: PathBuf,
    limits: Limits,
}

impl Cgroup {
    /// Creates an empty group, or returns `None` if this process may not or the kernel does not
    /// count there.
    pub(super) fn make(limits: Limits) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let parent = Path::new(ROOT).join(path.trim_start_matches('/'));
        // Another hierarchy or none is mounted.
        parent.join("cgroup.procs").exists().then_some(())?;
        let group = Self { dir: parent.join(format!("{NAME}{}", std::process::id())), limits };
        remove_left(&parent);
        group.set_up().ok()?;
        Some(group)
    }

    fn set_up(&self) -> io::Result<()> {
        match fs::create_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        if let Some(most) = self.limits.memory {
            self.write("memory.max", most)?;
            // Swapped memory counts as well.
            if self.dir.join("memory.swap.max").exists() {
                self.write("memory.swap.max", 0)?;
            }
        }
        if let Some(most) = self.limits.processes {
            self.write("pids.max", most.saturating_add(OURS))?;
        }
        Ok(())
    }

    /// Moves a process and its future children into the group. A process that is gone needs no
    /// limit.
    pub(super) fn take_in(&self, process: i32) {
        let _ = self.write("cgroup.procs", u64::from(process.unsigned_abs()));
    }

    /// Returns the exceeded limit.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        let memory = self.limits.memory.filter(|_| self.has_happened("memory.events", "oom_kill"));
        let processes = self.limits.processes.filter(|_| self.has_happened("pids.events", "max"));
        memory.map(Exceeded::Memory).or(processes.map(Exceeded::Processes))
    }

    fn has_happened(&self, file: &str, event: &str) -> bool {
        let events = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix(event)?.trim().parse::<u64>().ok());
        count.is_some_and(|count| count > 0)
    }

    /// Writes a number to an existing interface file.
    fn write(&self, file: &str, number: u64) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).open(self.dir.join(file))?;
        io::Write::write_all(&mut file, number.to_string().as_bytes())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A leftover costs the kernel a few pages, and a later attempt removes it.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Removes the groups of supervisors that were killed.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Groups with processes or of another user stay.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
