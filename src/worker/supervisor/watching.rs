//! What an attempt uses, looked at while it runs: by the kernel where it counts for us, else by us.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cgroup::Cgroup;
use super::handles;
use super::nameless::{self, Tables};
use super::rest::at_rest;
use super::walk::{self, Size};
use crate::model::limits::{Exceeded, Limits};
use crate::worker::sandbox::Word;
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

/// How long a look at the disk may take while somebody changes it; whoever has so much there that it takes longer is looked at while they
/// stand still.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// How long it may take then: nobody who means well has so much that it is not seen.
const LONGEST_AT_REST: Duration = Duration::from_secs(30);

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
    tables: Tables,
    /// Whether a first look was taken, which most attempts do not live to see: joining a control group takes the kernel longer than
    /// starting a program.
    looked: bool,
    cgroup: Option<Cgroup>,
    /// The processes that were put into it, or were in it already.
    gathered: BTreeSet<i32>,
    processes: Instant,
    disk: Instant,
    walking: Option<JoinHandle<Look>>,
    /// When the look was begun that goes on.
    began: Instant,
    /// How often in a row it was not looked at whole.
    blind: u32,
    /// How often in a row not all that is held in memory was looked at.
    late: u32,
}

impl Watch {
    /// Begins, before the command is started, which bounds itself as far as the kernel does so for each process.
    pub(super) fn new(limits: Limits, folders: &[Word], tables: Tables) -> Self {
        let now = Instant::now();
        let folders = folders.iter().map(|folder| AsRef::<Path>::as_ref(folder).to_owned()).collect();
        Self {
            limits,
            folders,
            tables,
            looked: false,
            cgroup: None,
            gathered: BTreeSet::new(),
            processes: now + OFTEN,
            disk: now + DISK,
            walking: None,
            began: now,
            blind: 0,
            late: 0,
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
        let open = handles::count(&below);
        if open > handles::most() {
            return Some(Exceeded::OpenFiles(handles::most()));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.cgroup = Cgroup::make(self.limits);
        }
        if let Some(cgroup) = &self.cgroup {
            gather(cgroup, &mut self.gathered, below);
            return cgroup.exceeded();
        }
        let most = self.limits.memory?;
        let (held, is_whole) = nameless::in_memory(&below, self.tables, Instant::now() + SELDOM);
        let held = held + handles::memory(open);
        let upper = below.iter().map(|pid| memory(*pid, false)).sum::<u64>();
        // What several share counts once, which takes longer to find out.
        if upper + held > most && below.iter().map(|pid| memory(*pid, true)).sum::<u64>() + held > most {
            return Some(Exceeded::Memory(most));
        }
        self.late = if is_whole { 0 } else { self.late + 1 };
        (self.late >= BLIND).then_some(Exceeded::Hidden(most))
    }

    fn look_at_disk(&mut self, now: Instant) -> Option<Exceeded> {
        let most = self.limits.disk?;
        if now < self.disk {
            return None;
        }
        if let Some(walk) = self.walking.take_if(|walk| walk.is_finished()) {
            self.disk = Instant::now() + (self.began.elapsed() * REST).clamp(DISK, LONGEST_REST);
            return self.seen(walk.join().unwrap_or(Look::Moving(Measured::default())), most);
        }
        self.disk = Instant::now() + OFTEN;
        if self.walking.is_none() {
            self.began = Instant::now();
            // Apart, so that the driver is listened to meanwhile, and time goes on for those who stand still.
            self.walking = std::thread::Builder::new().spawn(self.looking(most)).ok();
        }
        if self.walking.is_some() {
            return None;
        }
        // Where no thread is to be had, it is looked at all the same.
        let look = self.looking(most)();
        self.disk = Instant::now() + LONGEST_REST;
        self.seen(look, most)
    }

    /// Returns what looks at the disk once: while all stand still where it was not seen whole too often.
    fn looking(&self, most: u64) -> impl FnOnce() -> Look + Send + use<> {
        let (folders, tables, at_once) = (self.folders.clone(), self.tables, self.blind >= BLIND);
        move || {
            if at_once {
                Look::AtRest(at_rest(|| measure((&folders, most), tables, walk::size, LONGEST_AT_REST)))
            } else {
                Look::Moving(measure((&folders, most), tables, walk::size_in_motion, LONGEST_LOOK))
            }
        }
    }

    /// Notes what was seen; whoever keeps what lies on the disk from us is ended as who takes too much.
    fn seen(&mut self, look: Look, most: u64) -> Option<Exceeded> {
        match look {
            Look::Moving(seen) | Look::AtRest(Some(seen)) if seen.size > most => return Some(Exceeded::Disk(most)),
            Look::Moving(seen) | Look::AtRest(Some(seen)) if seen.is_whole => self.blind = 0,
            Look::Moving(seen) if seen.is_late => self.blind = BLIND,
            Look::Moving(_) | Look::AtRest(None) => self.blind += 1,
            Look::AtRest(Some(_)) => return Some(Exceeded::Hidden(most)),
        }
        // Who cannot be brought to stand still keeps it from us as well.
        (self.blind >= BLIND + RESTLESS).then_some(Exceeded::Hidden(most))
    }
}

/// A look at the disk.
enum Look {
    /// While all went on.
    Moving(Measured),
    /// While they stood still; none where they could not be brought to that.
    AtRest(Option<Measured>),
}

/// What was found on the disk.
#[derive(Default)]
struct Measured {
    /// What was seen, in bytes.
    size: u64,
    /// Whether that is all there was.
    is_whole: bool,
    /// Whether it took longer than it may.
    is_late: bool,
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
pub(super) fn numbers(text: &str, words: &[&str]) -> u64 {
    let value = |line: &str| {
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(value).sum()
}

/// Finds out what folders take on the disk, with what is open or mapped there and has no name any more. It ends once that is more than
/// `most`, or has taken `longest`.
fn measure((folders, most): (&[PathBuf], u64), tables: Tables, size: Size, longest: Duration) -> Measured {
    let until = Instant::now() + longest;
    let (nameless, is_whole) = nameless::on_disk(&all_below_us(), tables, until);
    let (named, all_named) = most.checked_sub(nameless).map_or((0, true), |left| size(folders, left, until));
    Measured { size: nameless.saturating_add(named), is_whole: is_whole && all_named, is_late: Instant::now() > until }
}
