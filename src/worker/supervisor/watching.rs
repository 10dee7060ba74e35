//! What an attempt uses, looked at while it runs: by the kernel where it counts for us, else by us.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cgroup::Cgroup;
use super::rest::at_rest;
use super::walk;
use crate::model::limits::{Exceeded, Limits};
use crate::worker::survivors;

/// How often processes are looked at; a look that takes long is followed by a longer rest.
const OFTEN: Duration = Duration::from_millis(100);

/// How often at least, however long a look takes: a worker can make it long.
const SELDOM: Duration = Duration::from_secs(1);

/// How often the disk is looked at, at most.
const DISK: Duration = Duration::from_secs(1);

/// How long it is not looked at, at most: a worker can make a look long, and fill the disk in the rest that follows.
const LONGEST_REST: Duration = Duration::from_secs(3);

/// So many times as long as a look took, nothing is looked at.
const REST: u32 = 10;

/// So often in a row the disk may not be looked at whole: what changes under us is looked at the next time, and somebody who sees to it
/// that there is always something may be taking what they like. Then it is looked at while all of them stand still.
const BLIND: u32 = 5;

/// So often in a row more they may not be brought to stand still, as where one is in a single call that takes the kernel long.
const RESTLESS: u32 = 2;

/// So often processes that came meanwhile are looked for.
const PASSES: usize = 20;

/// The processes between the supervisor and the command: bubblewrap's two, and the one that confines itself.
pub(super) const OURS: u64 = 3;

/// Looks at what an attempt uses.
pub(super) struct Watch {
    limits: Limits,
    folders: Vec<PathBuf>,
    /// Whether a first look was taken, which most attempts do not live to see: joining a control group takes the kernel longer than
    /// starting a program.
    looked: bool,
    cgroup: Option<Cgroup>,
    /// The processes that were put into it, or were in it already.
    gathered: BTreeSet<i32>,
    processes: Instant,
    disk: Instant,
    walking: Option<JoinHandle<Measured>>,
    /// How often in a row it was not looked at whole.
    blind: u32,
}

impl Watch {
    /// Begins, before the command is started, which bounds itself as far as the kernel does so for each process.
    pub(super) fn new(limits: Limits, folders: Vec<OsString>) -> Self {
        let now = Instant::now();
        let folders = folders.into_iter().map(PathBuf::from).collect();
        Self {
            limits,
            folders,
            looked: false,
            cgroup: None,
            gathered: BTreeSet::new(),
            processes: now + OFTEN,
            disk: now + DISK,
            walking: None,
            blind: 0,
        }
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
            self.processes = Instant::now() + (now.elapsed() * REST).clamp(OFTEN, SELDOM);
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
        // A thread takes the machine as much as a process does, and a number.
        let number: u64 = below.iter().map(|pid| survivors::threads(*pid).count().max(1) as u64).sum();
        if let Some(most) = self.limits.processes.filter(|most| number > most.saturating_add(OURS)) {
            return Some(Exceeded::Processes(most));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.cgroup = Cgroup::make(self.limits);
        }
        if let Some(cgroup) = &self.cgroup {
            gather(cgroup, &mut self.gathered, below);
            return cgroup.exceeded();
        }
        let most = self.limits.memory?;
        let (upper, hidden) =
            (below.iter().map(|pid| memory(*pid, false)).sum::<u64>(), held(&below, Vec::new(), is_in_memory));
        // What several share counts once, which takes longer to find out.
        let above = upper + hidden > most && below.iter().map(|pid| memory(*pid, true)).sum::<u64>() + hidden > most;
        above.then_some(Exceeded::Memory(most))
    }

    fn look_at_disk(&mut self, now: Instant) -> Option<Exceeded> {
        let most = self.limits.disk?;
        if now < self.disk {
            return None;
        }
        if let Some(walk) = self.walking.take_if(|walk| walk.is_finished()) {
            let Measured { size, is_whole, took } = walk.join().unwrap_or_default();
            self.disk = Instant::now() + (took * REST).clamp(DISK, LONGEST_REST);
            return if size > most { Some(Exceeded::Disk(most)) } else { self.seen(is_whole, most) };
        }
        if self.walking.is_some() {
            self.disk = Instant::now() + OFTEN;
            return None;
        }
        let folders = self.folders.clone();
        self.walking = std::thread::Builder::new().spawn(move || measure(&folders, most, walk::size_in_motion)).ok();
        self.disk = Instant::now() + if self.walking.is_some() { OFTEN } else { DISK };
        // Where no thread is to be had, it is looked at later.
        if self.walking.is_some() { None } else { self.seen(false, most) }
    }

    /// Notes whether all that lies on the disk was seen; whoever keeps it from us is ended as who takes too much.
    fn seen(&mut self, is_whole: bool, most: u64) -> Option<Exceeded> {
        self.blind = if is_whole { 0 } else { self.blind + 1 };
        if self.blind < BLIND {
            return None;
        }
        let Some(Measured { size, is_whole, .. }) = at_rest(|| measure(&self.folders, most, walk::size)) else {
            // Who cannot be brought to stand still keeps it from us as well.
            return (self.blind >= BLIND + RESTLESS).then_some(Exceeded::Hidden(most));
        };
        self.blind = 0;
        if size > most { Some(Exceeded::Disk(most)) } else { (!is_whole).then_some(Exceeded::Hidden(most)) }
    }
}

/// What was found on the disk.
#[derive(Default)]
struct Measured {
    /// What was seen, in bytes.
    size: u64,
    /// Whether that is all there was.
    is_whole: bool,
    took: Duration,
}

pub(super) fn all_below_us() -> BTreeSet<i32> {
    survivors::all_below(rustix::process::getpid())
}

/// Puts an attempt's processes into its control group, and those that they start meanwhile.
///
/// Whoever starts new ones faster than this is found by their number, or the next time.
fn gather(cgroup: &Cgroup, gathered: &mut BTreeSet<i32>, mut below: BTreeSet<i32>) {
    let until = Instant::now() + SELDOM;
    for _ in 0..PASSES {
        gathered.retain(|process| below.contains(process));
        let new: Vec<i32> = below.difference(gathered).copied().collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            // Each takes the kernel longer than it takes somebody to make the next one.
            if Instant::now() > until {
                return;
            }
            cgroup.take_in(process);
            gathered.insert(process);
        }
        below = all_below_us();
    }
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
    let tables = kilobytes(&status, &["VmPTE:"]);
    let pages = if shared && !rollup.is_empty() {
        kilobytes(&rollup, &["Pss_Anon:", "Pss_Shmem:"])
    } else {
        kilobytes(&status, &["RssAnon:", "RssShmem:"])
    };
    let swapped = kilobytes(&status, &["VmSwap:"]);
    (tables + pages + swapped) << 10
}

/// Returns what files without a name take that processes hold open, in bytes, of those that are looked for.
fn held(processes: &BTreeSet<i32>, more: Vec<PathBuf>, wanted: fn(&Path, &fs::Metadata) -> bool) -> u64 {
    let mut seen = BTreeSet::new();
    // Each thread can have its own table.
    let tasks = processes
        .iter()
        .flat_map(|pid| survivors::threads(*pid).map(move |thread| format!("/proc/{pid}/task/{thread}/fd")));
    let handles = tasks.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let found = handles.map(|handle| handle.path()).chain(more).filter_map(|handle| {
        let meta = fs::metadata(&handle).ok().filter(|meta| meta.is_file() && meta.nlink() == 0)?;
        (wanted(&handle, &meta) && seen.insert((meta.dev(), meta.ino()))).then(|| meta.blocks() * 512)
    });
    found.sum()
}

/// Returns the handles of files that a process has mapped and that have no name any more. The kernel lets only who may do as root does
/// look at what they lead to.
fn mapped(pid: i32) -> Vec<PathBuf> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let nameless = maps.split(|byte| *byte == b'\n').filter(|line| line.ends_with(b" (deleted)"));
    let handle = |line: &[u8]| {
        let range = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|number| u64::from_str_radix(number, 16).ok());
        Some(PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", from?, to?)))
    };
    nameless.filter_map(handle).collect()
}

/// Whether a handle leads to a file that lies in memory (`memfd_create`, or what is shared without a file).
fn is_in_memory(handle: &Path, _: &fs::Metadata) -> bool {
    let is_memory =
        |name: &[u8]| [&b"/memfd:"[..], b"/dev/zero (", b"/SYSV"].iter().any(|start| name.starts_with(start));
    fs::read_link(handle).is_ok_and(|target| is_memory(target.as_os_str().as_encoded_bytes()))
}

/// Returns the sum of some lines of a process's file.
fn kilobytes(text: &str, words: &[&str]) -> u64 {
    let value = |line: &str| {
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(value).sum()
}

/// Finds out what folders take on the disk, with what is open or mapped there and has no name any more. It ends once that is more than
/// `most`.
fn measure(folders: &[PathBuf], most: u64, size: fn(&[PathBuf], u64) -> (u64, bool)) -> Measured {
    let began = Instant::now();
    let on_disk = |handle: &Path, meta: &fs::Metadata| !is_in_memory(handle, meta);
    let below = all_below_us();
    let nameless = held(&below, below.iter().copied().flat_map(mapped).collect(), on_disk);
    let (named, is_whole) = most.checked_sub(nameless).map_or((0, true), |left| size(folders, left));
    Measured { size: nameless.saturating_add(named), is_whole, took: began.elapsed() }
}
