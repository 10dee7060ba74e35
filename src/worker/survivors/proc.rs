//! Finding escaped processes in `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::{ADOPTING, Left, mains};
use crate::git::program::with_groups;
use crate::worker::workspace::task_file;

/// [`VARIABLE`](super::VARIABLE) as environments have it.
const MARK: &[u8] = b"HANDOFF_TASK=";

/// Of an environment so much is read, in bytes, which is what Linux gives one at most by default: a process can say that its own is as
/// large as it likes. One that is larger says nothing.
const LONGEST: u64 = 2 << 20;

/// What is known of a process.
struct Process {
    parent: i32,
    group: i32,
    zombie: bool,
    /// Whether its environment or its working directory says that it is the attempt's.
    marked: bool,
    /// Whether one of them says that it is another attempt's.
    elsewhere: bool,
}

/// Kills the processes of an attempt that are not in its group; returns how many.
///
/// Where this process started the attempt and orphans become our children, nothing can be left if we have no children but the
/// main processes of other attempts.
pub(super) fn end_escaped(attempt_dir: &Path, left: Left, deadline: Instant) -> usize {
    if left != Left::Stranded && ADOPTING.load(Ordering::SeqCst) && !has_fallen() {
        return 0;
    }
    let mut killed = BTreeSet::new();
    loop {
        // Under the lock, so that no attempt starts between the look and the kill.
        let alive = mains(|running| with_groups(|groups| round((attempt_dir, left), (running, groups), &mut killed)));
        // One more look after the last kill: what it started meanwhile is an orphan by then.
        if !alive || Instant::now() > deadline {
            return killed.len();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether something of an attempt is alive, of whoever drove it.
pub(super) fn are_left(attempt_dir: &Path, running: &BTreeSet<i32>) -> bool {
    let Ok(processes) = scan(attempt_dir) else { return true };
    let left = with_groups(|groups| victims(&processes, Left::Stranded, running, groups));
    left.iter().any(|pid| !processes[pid].zombie)
}

/// Looks once and kills what is found; returns whether anything was alive.
fn round(
    (attempt_dir, left): (&Path, Left),
    (running, groups): (&BTreeSet<i32>, &BTreeSet<i32>),
    killed: &mut BTreeSet<i32>,
) -> bool {
    // Who cannot be looked for may be there.
    let Ok(processes) = scan(attempt_dir) else { return true };
    let mut alive = false;
    for pid in victims(&processes, left, running, groups) {
        let Some(id) = Pid::from_raw(pid) else { continue };
        if processes[&pid].zombie {
            // Only an orphan of the attempt gets here, never a child that somebody else waits for.
            let _ = rustix::process::waitpid(Some(id), WaitOptions::NOHANG);
            continue;
        }
        alive |= kill(id, processes[&pid].parent);
        killed.insert(pid);
    }
    alive
}

/// Whether there is a child of ours that is no main process of an attempt; true where that cannot be told.
///
/// A program that we run ourselves counts too: a closer look tells it apart.
fn has_fallen() -> bool {
    !children_of("self").is_some_and(|pids| mains(|mains| pids.is_subset(mains)))
}

/// Kills once all that is below a process, however deep: whoever looks at its own children alone is held up by a long line of
/// processes each of which takes what the next one leaves.
pub(in crate::worker) fn kill_all_below(top: Pid) {
    let top = top.as_raw_nonzero().get();
    let below = below(top);
    for pid in below.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        kill_if(pid, |parent| parent == top || below.contains(&parent));
    }
}

/// Returns all that is below a process, however deep.
pub(in crate::worker) fn all_below(top: Pid) -> BTreeSet<i32> {
    below(top.as_raw_nonzero().get())
}

/// The processes below one.
fn below(top: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut next = vec![top];
    if children_of(&top.to_string()).is_some() {
        while let Some(pid) = next.pop() {
            let new = children_of(&pid.to_string()).unwrap_or_default();
            next.extend(new.into_iter().filter(|pid| found.insert(*pid)));
        }
        return found;
    }
    let processes = scan(Path::new("/proc/self")).unwrap_or_default();
    while let Some(at) = next.pop() {
        let new = processes.iter().filter(|(_, process)| process.parent == at).map(|(pid, _)| *pid);
        next.extend(new.filter(|pid| found.insert(*pid)));
    }
    found
}

/// The children of all threads of a process; none where the kernel does not list them, or the process is gone.
fn children_of(process: &str) -> Option<BTreeSet<i32>> {
    let mut pids = BTreeSet::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let list = match fs::read_to_string(task.ok()?.path().join("children")) {
            Ok(list) => list,
            // A thread that ended meanwhile; its children are another thread's now, or the list is not supported at all.
            Err(e) if e.kind() == io::ErrorKind::NotFound && Path::new("/proc/thread-self/children").exists() => {
                continue;
            }
            Err(_) => return None,
        };
        pids.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(pids)
}

/// Reads all processes; an error where they cannot be listed, which says nothing of what there is.
fn scan(attempt_dir: &Path) -> io::Result<BTreeMap<i32, Process>> {
    let mark = [MARK, task_file(attempt_dir).as_os_str().as_bytes()].concat();
    let entries = fs::read_dir("/proc")?.collect::<io::Result<Vec<_>>>()?;
    let pids = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(|pid| Some((pid, read(pid, &mark, attempt_dir)?))).collect())
}

fn read(pid: i32, mark: &[u8], attempt_dir: &Path) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses can hold anything, so the fields are counted from its end.
    let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let mut fields = stat.get(after..)?.split(|byte| *byte == b' ').map(String::from_utf8_lossy);
    let zombie =
        is_over(&fields.next()?) && threads(pid).all(|thread| state(pid, thread).is_none_or(|state| is_over(&state)));
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let environ = environment(pid).unwrap_or_default();
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    let variables = || environ.split(|byte| *byte == 0);
    let marked = variables().any(|variable| variable == mark) || cwd.starts_with(attempt_dir);
    // All runs' folders lie side by side, each with those of its attempts.
    let all = attempt_dir.parent().and_then(Path::parent);
    let elsewhere =
        variables().any(|variable| variable.starts_with(MARK)) || all.is_some_and(|all| cwd.starts_with(all));
    Some(Process { parent, group, zombie, marked, elsewhere: elsewhere && !marked })
}

fn environment(pid: i32) -> Option<Vec<u8>> {
    let mut environ = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(LONGEST + 1).read_to_end(&mut environ).ok()?;
    (environ.len() as u64 <= LONGEST).then_some(environ)
}

/// Whether a thread in this state runs no more. Of a process the kernel tells that of the first thread, which others outlive.
fn is_over(state: &str) -> bool {
    matches!(state, "Z" | "X")
}

/// Returns the numbers of a process's threads.
pub(in crate::worker) fn threads(pid: i32) -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok())
}

/// Whether a thread runs, as the kernel tells it.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) struct Run {
    /// Whether it was stopped, or has ended.
    pub(in crate::worker) is_stopped: bool,
    /// Whether it waits for something that no signal interrupts, as for a child that is about to be another program.
    pub(in crate::worker) waits: bool,
    /// How often it gave up a processor.
    pub(in crate::worker) switches: u64,
}

/// Looks at a thread; none where it is gone.
pub(in crate::worker) fn run(pid: i32, thread: i32) -> Option<Run> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
    let values = |word: &'static str| status.lines().filter_map(move |line| line.strip_prefix(word)?.split_once(':'));
    let state = values("State").next()?.1.trim_start().chars().next()?;
    let count = |word| values(word).filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>();
    let switches = count("voluntary_ctxt_switches") + count("nonvoluntary_ctxt_switches");
    Some(Run { is_stopped: matches!(state, 'T' | 't' | 'Z' | 'X'), waits: state == 'D', switches })
}

fn state(pid: i32, thread: i32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let state = stat.get(after..)?.split(|byte| *byte == b' ').next()?;
    Some(String::from_utf8_lossy(state).into_owned())
}

/// Picks the processes that belong to the attempt, and the zombies that fell to us.
///
/// Those that say so, and all below them. An orphan of ours that says nothing is taken as well: who left its group, emptied its
/// environment and went away is not to see another attempt's files. One that says that it is another attempt's is left to that
/// one while others run, unless those are held by supervisors, so that none of theirs can be our child.
fn victims(
    processes: &BTreeMap<i32, Process>,
    left: Left,
    running: &BTreeSet<i32>,
    groups: &BTreeSet<i32>,
) -> BTreeSet<i32> {
    let own = rustix::process::getpid();
    let (me, my_group) = (own.as_raw_nonzero().get(), rustix::process::getpgrp().as_raw_nonzero().get());
    let adopting = ADOPTING.load(Ordering::SeqCst);
    let mut spared: BTreeSet<i32> = running.clone();
    let mut at = me;
    while at > 0 && spared.insert(at) {
        at = processes.get(&at).map_or(0, |process| process.parent);
    }
    // Programs that we run ourselves stay in our own group, or in one that is known.
    let others = |p: &Process| left != Left::Fallen && p.elsewhere && !running.is_empty() && !p.zombie;
    let orphan =
        |p: &Process| adopting && p.parent == me && p.group != my_group && !groups.contains(&p.group) && !others(p);
    let first = processes.iter().filter(|(_, p)| p.marked || orphan(p));
    let mut found: BTreeSet<i32> = first.map(|(pid, _)| *pid).filter(|pid| !spared.contains(pid)).collect();
    loop {
        let below = processes.iter().filter(|(pid, p)| found.contains(&p.parent) && !spared.contains(pid));
        let below: Vec<i32> = below.map(|(pid, _)| *pid).collect();
        let before = found.len();
        found.extend(below);
        if found.len() == before {
            return found;
        }
    }
}

/// Kills a process if it still is the one that was looked at; returns whether it was there.
fn kill(pid: Pid, parent: i32) -> bool {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    // Its parent may just have been killed, which makes it ours, or init's.
    kill_if(pid, |now| now == parent || now == me || now == 1)
}

/// Kills a process whose parent is one that it may have; returns whether it was there.
fn kill_if(pid: Pid, may_have: impl Fn(i32) -> bool) -> bool {
    let Ok(fd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    // The number could have become another process's between the look and the opening, but then with another parent, unless
    // that is one of the attempt's again.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let now = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<i32>().ok());
    if !now.is_some_and(may_have) {
        return true;
    }
    rustix::process::pidfd_send_signal(fd, Signal::KILL).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_below_a_process_is_found_however_deep() {
        // Each waits for the next; the last one says who it is.
        let script = "sh -c 'sh -c \"echo \\$\\$; read line; :\"; :'; :";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let last: i32 = line.trim().parse().unwrap();
        let below = below(i32::try_from(child.id()).unwrap());
        assert!(below.contains(&last) && below.len() == 2, "{below:?}, {last}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
