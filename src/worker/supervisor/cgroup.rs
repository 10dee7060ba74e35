//! A control group for one attempt, where this process may make one: the kernel then counts and bounds memory and processes.
//!
//! Both versions are known; the interface files are those of `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/` of Linux.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::watching::OURS;
use crate::model::limits::{Exceeded, Limits};

/// Where control groups are found.
const ROOT: &str = "/sys/fs/cgroup";

/// What a group is called, before the number of the process that looks after it.
const NAME: &str = "git-handoff-";

/// The groups of one attempt; they go when this does, if nothing is in them any more.
pub(super) struct Cgroup {
    /// The group that counts memory, the file that says how often the limit was enforced, and that file's word for it.
    memory: Group,
    /// The same for processes.
    processes: Group,
    limits: Limits,
}

struct Group {
    dir: PathBuf,
    events: &'static str,
    word: &'static str,
}

impl Cgroup {
    /// Makes the groups, with nothing in them; none where this process may not, or the kernel does not count there.
    pub(super) fn make(limits: Limits) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let name = format!("{NAME}{}", std::process::id());
        let unified = own.lines().find_map(|line| line.strip_prefix("0::"));
        let legacy = |controller: &str| {
            let line = own.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|name| name == controller).then_some(path)
            })?;
            Some(below(&Path::new(ROOT).join(controller), line).join(&name))
        };
        let (memory, processes) = if let (Some(memory), Some(pids)) = (legacy("memory"), legacy("pids")) {
            (
                Group { dir: memory, events: "memory.oom_control", word: "oom_kill" },
                Group { dir: pids, events: "pids.events", word: "max" },
            )
        } else {
            let dir = below(Path::new(ROOT), unified?).join(&name);
            (
                Group { dir: dir.clone(), events: "memory.events", word: "oom_kill" },
                Group { dir, events: "pids.events", word: "max" },
            )
        };
        let cgroup = Self { memory, processes, limits };
        cgroup.set_up().ok()?;
        Some(cgroup)
    }

    fn set_up(&self) -> io::Result<()> {
        for group in [&self.memory, &self.processes] {
            remove_left(group.dir.parent().unwrap_or(Path::new(ROOT)));
            match fs::create_dir(&group.dir) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        if let Some(most) = self.limits.memory {
            let legacy = self.memory.dir.join("memory.limit_in_bytes");
            let file = if legacy.exists() { legacy } else { self.memory.dir.join("memory.max") };
            write(&file, &most.to_string())?;
            // What is swapped out is used as well.
            let swap = self.memory.dir.join("memory.swap.max");
            if swap.exists() {
                write(&swap, "0")?;
            }
        }
        if let Some(most) = self.limits.processes {
            write(&self.processes.dir.join("pids.max"), &most.saturating_add(OURS).to_string())?;
        }
        Ok(())
    }

    /// Takes a process in, and with it all that it starts from then on; what is gone by now needs no counting.
    pub(super) fn take_in(&self, process: i32) {
        for group in [&self.memory, &self.processes] {
            let _ = write(&group.dir.join("cgroup.procs"), &process.to_string());
        }
    }

    /// Returns what was used more of than may be.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        let memory = self.limits.memory.filter(|_| self.memory.has_happened());
        let processes = self.limits.processes.filter(|_| self.processes.has_happened());
        memory.map(Exceeded::Memory).or(processes.map(Exceeded::Processes))
    }
}

impl Group {
    fn has_happened(&self) -> bool {
        let events = fs::read_to_string(self.dir.join(self.events)).unwrap_or_default();
        let count = events.lines().find_map(|line| line.strip_prefix(self.word)?.trim().parse::<u64>().ok());
        count.is_some_and(|count| count > 0)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for group in [&self.memory, &self.processes] {
            // Where it cannot be removed, it costs the kernel a few pages, and is used again by who has the same number.
            let _ = fs::remove_dir(&group.dir);
        }
    }
}

/// Removes the groups of supervisors that were killed.
fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // One that something is in, or that is another's, stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Writes to a file that is there.
fn write(file: &Path, text: &str) -> io::Result<()> {
    io::Write::write_all(&mut fs::OpenOptions::new().write(true).open(file)?, text.as_bytes())
}

/// Joins a path as the kernel says it.
fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}
