//! Measures a running attempt: by a control group if this process may create one, otherwise from
//! `/proc`.
//!
//! Scans the disk at intervals while the attempt runs. Free space is reserved to cover what a scan
//! misses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cgroup::Cgroup;
use super::deleted_files::{self, Kept};
use crate::model::limits::{Exceeded, Limits};
use crate::process::disk;
use crate::process::survivors;
use crate::sandbox::{Lease, Word};

/// The shortest interval between checks of processes; a slow check is followed by a longer pause.
const OFTEN: Duration = Duration::from_millis(100);

/// The longest interval between checks of processes.
const SELDOM: Duration = Duration::from_secs(1);

/// The shortest interval between scans of the disk.
const DISK: Duration = Duration::from_secs(1);

/// The pause after a check, as a multiple of its duration.
const REST: u32 = 10;

/// The least bytes counted for each file: file systems also limit the number of files.
const LEAST: u64 = 4096;

/// The processes between the supervisor and the command: two of bubblewrap, and the one that
/// confines itself.
pub(super) const OURS: u64 = 3;

/// Measures an attempt's usage.
pub(super) struct Watch {
    limits: Limits,
    folders: Vec<PathBuf>,
    /// Folders with enough free space at the start, and the free space that must remain.
    floors: Vec<(PathBuf, u64)>,
    /// True after the first check. Most attempts end before it: joining a control group takes
    /// longer than starting a program.
    looked: bool,
    cgroup: Option<Cgroup>,
    /// The processes already in the group.
    gathered: BTreeSet<i32>,
    processes: Instant,
    disk: Instant,
    /// The running scan of the disk, with its start.
    scan: Option<(JoinHandle<u64>, Instant)>,
    lease: Option<Lease>,
}

impl Watch {
    /// Starts before the command, which sets the kernel's limits for each process on itself.
    pub(super) fn new(limits: Limits, folders: &[Word], lease: Option<Lease>) -> Self {
        let now = Instant::now();
        let folders: Vec<PathBuf> = folders.iter().map(|folder| AsRef::<Path>::as_ref(folder).to_owned()).collect();
        let floors = folders
            .iter()
            .filter_map(|folder| {
                let (free, floor) = disk::free(folder)?;
                (free > floor).then(|| (folder.clone(), floor))
            })
            .collect();
        let (processes, disk) = (now + OFTEN, now + DISK);
        let (cgroup, gathered, scan) = (None, BTreeSet::new(), None);
        Self { limits, folders, floors, looked: false, cgroup, gathered, processes, disk, scan, lease }
    }

    /// Returns the time until the next check.
    pub(super) fn due(&self) -> Duration {
        let due = self.processes.min(self.disk).saturating_duration_since(Instant::now());
        // Another machine may take the item a third of this time after the end of it.
        self.lease.as_ref().map_or(due, |lease| due.min(Duration::from_millis(lease.millis / 12)))
    }

    /// Runs a check if it is due. Returns the exceeded limit.
    pub(super) fn look(&mut self) -> Option<Exceeded> {
        let now = Instant::now();
        let mut found = self.silence().or_else(|| self.floor());
        if found.is_none() && now >= self.processes {
            found = self.count();
            self.processes = Instant::now() + (now.elapsed() * REST).clamp(OFTEN, SELDOM);
        }
        found.or_else(|| self.look_at_disk(now))
    }

    /// Returns the limit that the kernel saw exceeded, after the attempt ended.
    pub(super) fn last(&self) -> Option<Exceeded> {
        self.cgroup.as_ref()?.exceeded()
    }

    /// Counts processes and memory, unless the kernel does.
    fn count(&mut self) -> Option<Exceeded> {
        let below = all_below_us();
        // A thread costs as much as a process and also has an id.
        let number: u64 = below.iter().map(|pid| survivors::threads(*pid).count().max(1) as u64).sum();
        if let Some(most) = self.limits.processes.filter(|most| number > most.saturating_add(OURS)) {
            return Some(Exceeded::Processes(most));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.cgroup = Cgroup::make(self.limits);
        }
        if let Some(cgroup) = &self.cgroup {
            // Their later children join the group by themselves.
            below.difference(&self.gathered).for_each(|process| cgroup.take_in(*process));
            self.gathered = below;
            return cgroup.exceeded();
        }
        let most = self.limits.memory?;
        let deleted = deleted_files::size(&below, Kept::InMemory);
        let upper = below.iter().map(|pid| memory(*pid, false)).sum::<u64>();
        // Shared memory counts once, which takes longer to compute.
        let exceeds =
            upper + deleted > most && below.iter().map(|pid| memory(*pid, true)).sum::<u64>() + deleted > most;
        exceeds.then_some(Exceeded::Memory(most))
    }

    /// Returns the time for which the driver may be silent, if it was silent for longer.
    ///
    /// Uses the clock that counts suspended time, because other machines go on meanwhile.
    fn silence(&self) -> Option<Exceeded> {
        let Lease { file, millis } = self.lease.as_ref()?;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now = u64::try_from(now.tv_sec).ok()? * 1000 + u64::try_from(now.tv_nsec).ok()? / 1_000_000;
        let last =
            fs::read_to_string(AsRef::<Path>::as_ref(file)).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let is_heard = last.is_some_and(|last| now.saturating_sub(last) <= *millis);
        (!is_heard).then_some(Exceeded::Silence(*millis))
    }

    /// Returns the reserve that a file system has fallen below.
    fn floor(&self) -> Option<Exceeded> {
        self.floors
            .iter()
            .find(|(folder, floor)| disk::free(folder).is_some_and(|(free, _)| free < *floor))
            .map(|(_, floor)| Exceeded::Free(*floor))
    }

    /// Finishes or starts a scan of the disk in a thread, so that the driver is still heard.
    fn look_at_disk(&mut self, now: Instant) -> Option<Exceeded> {
        let most = self.limits.disk?;
        if now < self.disk {
            return None;
        }
        self.disk = now + OFTEN;
        let Some((scan, began)) = self.scan.take() else {
            let folders = self.folders.clone();
            let scan = move || {
                let nameless = deleted_files::size(&all_below_us(), Kept::OnDisk);
                folders.iter().fold(nameless, |sum, folder| sum.saturating_add(disk::size(folder, LEAST)))
            };
            // Without a thread, the next check tries again.
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
    survivors::descendants(rustix::process::getpid())
}

/// Returns a process's memory in bytes; with `shared`, shared memory counts in part for each
/// process. Counts it in full if that cannot be read.
fn memory(pid: i32, shared: bool) -> u64 {
    let status = |thread: &i32| fs::read_to_string(format!("/proc/{thread}/status")).ok();
    // An ended first thread shows no memory; the other threads show all of it.
    let found = std::iter::once(pid)
        .chain(survivors::threads(pid))
        .find_map(|thread| status(&thread).filter(|status| status.contains("\nVmRSS:")).map(|status| (thread, status)));
    let Some((thread, text)) = found else { return 0 };
    let rollup = fs::read_to_string(format!("/proc/{thread}/smaps_rollup")).unwrap_or_default();
    let tables = numbers(&text, &["VmPTE:"]);
    let pages = if shared && !rollup.is_empty() {
        numbers(&rollup, &["Pss_Anon:", "Pss_Shmem:"])
    } else {
        numbers(&text, &["RssAnon:", "RssShmem:"])
    };
    let swapped = numbers(&text, &["VmSwap:"]);
    (tables + pages + swapped) << 10
}

/// Returns the sum of the numbers on the lines of `text` that start with `words`.
fn numbers(text: &str, words: &[&str]) -> u64 {
    text.lines()
        .filter_map(|line| {
            let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum()
}
