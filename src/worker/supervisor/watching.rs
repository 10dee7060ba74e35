//! Measures an attempt while it runs: by a control group if this process may make one, else by
//! looking at `/proc`.
//!
//! The disk is scanned now and then, while the attempt goes on. A part of the file system stays
//! free: that stops what a scan misses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cgroup::Cgroup;
use super::nameless::{self, Kept};
use crate::model::limits::{Exceeded, Limits};
use crate::worker::disk;
use crate::worker::sandbox::Word;
use crate::worker::survivors;

/// How often processes are looked at; a look that takes long is followed by a longer rest.
const OFTEN: Duration = Duration::from_millis(100);

/// How often they are looked at, at least.
const SELDOM: Duration = Duration::from_secs(1);

/// How often the disk is scanned, at most.
const DISK: Duration = Duration::from_secs(1);

/// How long a look is followed by none: so many times as long as it took.
const REST: u32 = 10;

/// The bytes on the disk that each file counts at least: a file system has only so many files.
const LEAST: u64 = 4096;

/// The processes between the supervisor and the command: bubblewrap's two, and the one that confines itself.
pub(super) const OURS: u64 = 3;

/// Looks at what an attempt uses.
pub(super) struct Watch {
    limits: Limits,
    folders: Vec<PathBuf>,
    /// The folders whose file systems have more free than has to stay free, and how much that is.
    floors: Vec<(PathBuf, u64)>,
    /// Whether a first look was taken, which most attempts do not live to see: joining a control group takes the kernel longer than
    /// starting a program.
    looked: bool,
    cgroup: Option<Cgroup>,
    /// The processes that were put into it, or were in it already.
    gathered: BTreeSet<i32>,
    processes: Instant,
    disk: Instant,
    /// The scan of the disk that goes on, and when it began.
    scan: Option<(JoinHandle<u64>, Instant)>,
}

impl Watch {
    /// Begins, before the command is started, which bounds itself as far as the kernel does so for each process.
    pub(super) fn new(limits: Limits, folders: &[Word]) -> Self {
        let now = Instant::now();
        let folders: Vec<PathBuf> = folders.iter().map(|folder| AsRef::<Path>::as_ref(folder).to_owned()).collect();
        let floor = |folder: &PathBuf| {
            let (free, floor) = disk::free(folder)?;
            (free > floor).then(|| (folder.clone(), floor))
        };
        let floors = folders.iter().filter_map(floor).collect();
        let (processes, disk) = (now + OFTEN, now + DISK);
        let (cgroup, gathered, scan) = (None, BTreeSet::new(), None);
        Self { limits, folders, floors, looked: false, cgroup, gathered, processes, disk, scan }
    }

    /// Returns how long until the next look.
    pub(super) fn due(&self) -> Duration {
        self.processes.min(self.disk).saturating_duration_since(Instant::now())
    }

    /// Looks, if it is time to; returns which limit is exceeded.
    pub(super) fn look(&mut self) -> Option<Exceeded> {
        let now = Instant::now();
        let mut found = self.floor();
        if found.is_none() && now >= self.processes {
            found = self.count();
            self.processes = Instant::now() + (now.elapsed() * REST).clamp(OFTEN, SELDOM);
        }
        found.or_else(|| self.look_at_disk(now))
    }

    /// Returns which limit the kernel saw exceeded, now that the attempt is over.
    pub(super) fn last(&self) -> Option<Exceeded> {
        self.cgroup.as_ref()?.exceeded()
    }

    /// Counts processes and memory, as far as the kernel does not.
    fn count(&mut self) -> Option<Exceeded> {
        let below = all_below_us();
        // A thread takes the machine as much as a process does, and a number.
        let number: u64 = below.iter().map(|pid| survivors::threads(*pid).count().max(1) as u64).sum();
        if let Some(most) = self.limits.processes.filter(|most| number > most.saturating_add(OURS)) {
            return Some(Exceeded::Processes(most));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.cgroup = Cgroup::make(self.limits);
        }
        if let Some(cgroup) = &self.cgroup {
            // Their later children are in the group as well.
            below.difference(&self.gathered).for_each(|process| cgroup.take_in(*process));
            self.gathered = below;
            return cgroup.exceeded();
        }
        let most = self.limits.memory?;
        let held = nameless::size(&below, Kept::InMemory);
        let upper = below.iter().map(|pid| memory(*pid, false)).sum::<u64>();
        // What several share counts once, which takes longer to find out.
        let exceeds = upper + held > most && below.iter().map(|pid| memory(*pid, true)).sum::<u64>() + held > most;
        exceeds.then_some(Exceeded::Memory(most))
    }

    /// Returns the floor that a file system has less free than.
    fn floor(&self) -> Option<Exceeded> {
        let is_below = |(folder, floor): &&(PathBuf, u64)| disk::free(folder).is_some_and(|(free, _)| free < *floor);
        self.floors.iter().find(is_below).map(|(_, floor)| Exceeded::Free(*floor))
    }

    /// Ends or begins a scan of the disk. It runs in a thread of its own, so that the driver is
    /// listened to meanwhile.
    fn look_at_disk(&mut self, now: Instant) -> Option<Exceeded> {
        let most = self.limits.disk?;
        if now < self.disk {
            return None;
        }
        self.disk = now + OFTEN;
        let Some((scan, began)) = self.scan.take() else {
            let folders = self.folders.clone();
            let scan = move || {
                let nameless = nameless::size(&all_below_us(), Kept::OnDisk);
                folders.iter().fold(nameless, |sum, folder| sum.saturating_add(disk::size(folder, LEAST)))
            };
            // If no thread can be had, the next look tries again.
            self.scan = std::thread::Builder::new().spawn(scan).ok().map(|scan| (scan, now));
            return None;
        };
        if !scan.is_finished() {
            self.scan = Some((scan, began));
            return None;
        }
        self.disk = now + (began.elapsed() * REST).max(DISK);
        let size = scan.join().unwrap_or_default();
        (size > most).then_some(Exceeded::Disk(most))
    }
}

fn all_below_us() -> BTreeSet<i32> {
    survivors::all_below(rustix::process::getpid())
}

/// Returns the memory of a process, in bytes: `shared` says that what several have counts for each in part. Where that may not be
/// seen, it counts whole.
fn memory(pid: i32, shared: bool) -> u64 {
    let status = |thread: &i32| fs::read_to_string(format!("/proc/{thread}/status")).ok();
    // A first thread that ended has no memory, of which the others have all.
    let found = std::iter::once(pid)
        .chain(survivors::threads(pid))
        .find_map(|thread| status(&thread).filter(|status| status.contains("\nVmRSS:")).map(|status| (thread, status)));
    let Some((thread, status)) = found else { return 0 };
    let rollup = fs::read_to_string(format!("/proc/{thread}/smaps_rollup")).unwrap_or_default();
    let tables = numbers(&status, &["VmPTE:"]);
    let pages = if shared && !rollup.is_empty() {
        numbers(&rollup, &["Pss_Anon:", "Pss_Shmem:"])
    } else {
        numbers(&status, &["RssAnon:", "RssShmem:"])
    };
    let swapped = numbers(&status, &["VmSwap:"]);
    (tables + pages + swapped) << 10
}

/// Returns the sum of the numbers on some lines of a process's file.
fn numbers(text: &str, words: &[&str]) -> u64 {
    let value = |line: &str| {
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(value).sum()
}
