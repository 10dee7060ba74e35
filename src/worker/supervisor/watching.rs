//! What an attempt uses, looked at while it runs: by the kernel where it counts for us, else by us.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};

use super::cgroup::Cgroup;
use crate::model::limits::{Exceeded, Limits};
use crate::worker::survivors;

/// How often processes are looked at; a look that takes long is followed by a longer rest.
const OFTEN: Duration = Duration::from_millis(100);

/// How often the disk is looked at, at most.
const DISK: Duration = Duration::from_secs(1);

/// So many times as long as a look took, nothing is looked at.
const REST: u32 = 10;

/// So often processes that came meanwhile are looked for.
const PASSES: usize = 20;

/// The processes between the supervisor and the command: bubblewrap's two, and the one that confines itself.
const OURS: u64 = 3;

/// Looks at what an attempt uses.
pub(super) struct Watch {
    limits: Limits,
    folders: Vec<PathBuf>,
    /// Whether a first look was taken, which most attempts do not live to see: joining a control group takes the kernel longer than
    /// starting a program.
    looked: bool,
    cgroup: Option<Cgroup>,
    processes: Instant,
    disk: Instant,
    walking: Option<JoinHandle<(u64, Duration)>>,
}

impl Watch {
    /// Begins, before the command is started: sets what the kernel bounds for each process, on this one and whatever it starts.
    pub(super) fn new(limits: Limits, folders: Vec<OsString>) -> io::Result<Self> {
        for (resource, most) in [
            (Resource::Cpu, limits.cpu_time),
            (Resource::Nofile, limits.open_files),
            (Resource::Fsize, limits.file_size),
        ] {
            if let Some(most) = most {
                let now = rustix::process::getrlimit(resource);
                let most = now.maximum.map_or(most, |maximum| maximum.min(most));
                rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
            }
        }
        let now = Instant::now();
        let folders = folders.into_iter().map(PathBuf::from).collect();
        Ok(Self {
            limits,
            folders,
            looked: false,
            cgroup: None,
            processes: now + OFTEN,
            disk: now + DISK,
            walking: None,
        })
    }

    /// Returns how long until the next look.
    pub(super) fn due(&self) -> Duration {
        self.processes.min(self.disk).saturating_duration_since(Instant::now())
    }

    /// Looks, where it is time to; returns what is used more of than may be.
    pub(super) fn look(&mut self) -> Option<Exceeded> {
        let now = Instant::now();
        let mut found = None;
        if now >= self.processes {
            found = self.count();
            self.processes = Instant::now() + OFTEN.max(now.elapsed() * REST);
        }
        found.or_else(|| self.look_at_disk(now))
    }

    /// Returns what the kernel saw that was used more of, now that it is over.
    pub(super) fn last(&self) -> Option<Exceeded> {
        self.cgroup.as_ref()?.exceeded()
    }

    /// Counts processes and memory, as far as the kernel does not.
    fn count(&mut self) -> Option<Exceeded> {
        let below = all_below_us();
        if let Some(most) = self.limits.processes.filter(|most| below.len() as u64 > most.saturating_add(OURS)) {
            return Some(Exceeded::Processes(most));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.cgroup = gather(self.limits, &below);
        }
        if let Some(cgroup) = &self.cgroup {
            return cgroup.exceeded();
        }
        let most = self.limits.memory?;
        let sum = |file: &str, words: &[&str]| below.iter().map(|pid| kilobytes(*pid, file, words)).sum::<u64>() << 10;
        let unnamed = unnamed_files(&below);
        // What several share counts once, which takes longer to find out; a file without a name counts whether it is mapped or not.
        let above = sum("status", &["RssAnon:", "RssShmem:"]) + unnamed > most
            && sum("smaps_rollup", &["Pss_Anon:"]) + sum("smaps_rollup", &["Pss_Shmem:"]).max(unnamed) > most;
        above.then_some(Exceeded::Memory(most))
    }

    fn look_at_disk(&mut self, now: Instant) -> Option<Exceeded> {
        let most = self.limits.disk?;
        if let Some(walk) = self.walking.take_if(|walk| walk.is_finished()) {
            let (size, took) = walk.join().unwrap_or_default();
            self.disk = Instant::now() + DISK.max(took * REST);
            return (size > most).then_some(Exceeded::Disk(most));
        }
        if self.walking.is_none() && now >= self.disk {
            let folders = self.folders.clone();
            // Where no thread is to be had, it is looked at later.
            self.walking = std::thread::Builder::new().spawn(move || measure(&folders)).ok();
        }
        self.disk = Instant::now() + OFTEN;
        None
    }
}

fn all_below_us() -> BTreeSet<i32> {
    survivors::all_below(rustix::process::getpid())
}

/// Puts an attempt's processes into a control group, and those that they start meanwhile.
fn gather(limits: Limits, first: &BTreeSet<i32>) -> Option<Cgroup> {
    let cgroup = Cgroup::make(limits)?;
    let mut known = first.clone();
    cgroup.take_in(first.iter().copied());
    // Whoever starts new ones faster than this is found by their number.
    for _ in 0..PASSES {
        let new: Vec<i32> = all_below_us().difference(&known).copied().collect();
        if new.is_empty() {
            break;
        }
        cgroup.take_in(new.iter().copied());
        known.extend(new);
    }
    Some(cgroup)
}

/// Returns what files that lie in memory and have no name take, of those that processes hold open (`memfd_create`), in bytes.
fn unnamed_files(processes: &BTreeSet<i32>) -> u64 {
    let mut seen = BTreeSet::new();
    let handles = processes.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten());
    let in_memory = handles.flatten().map(|handle| handle.path()).filter(|handle| {
        fs::read_link(handle).is_ok_and(|target| target.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
    });
    let metas = in_memory.filter_map(|handle| fs::metadata(handle).ok());
    metas.filter(|meta| seen.insert((meta.dev(), meta.ino()))).map(|meta| meta.blocks() * 512).sum()
}

/// Returns the sum of some lines of a process's file; 0 for one that is gone.
fn kilobytes(pid: i32, file: &str, words: &[&str]) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let value = |line: &str| {
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(value).sum()
}

/// Returns what folders take on the disk, and how long it took to find out; links are not followed.
fn measure(folders: &[PathBuf]) -> (u64, Duration) {
    let began = Instant::now();
    let mut sum = 0;
    let mut seen = BTreeSet::new();
    let mut next: Vec<PathBuf> = folders.to_vec();
    while let Some(folder) = next.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.nlink() < 2 || meta.is_dir() || seen.insert((meta.dev(), meta.ino())) {
                sum += meta.blocks() * 512;
            }
            if meta.is_dir() && is_same_disk(&folder, &meta) {
                next.push(entry.path());
            }
        }
    }
    (sum, began.elapsed())
}

/// Whether a folder lies on the disk of the one that it is in.
fn is_same_disk(above: &Path, meta: &fs::Metadata) -> bool {
    fs::symlink_metadata(above).is_ok_and(|above| above.dev() == meta.dev())
}
