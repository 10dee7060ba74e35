//! Finds an attempt's processes in `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

/// The start of [`VARIABLE`](super::VARIABLE) in an environment.
const MARK: &[u8] = b"HANDOFF_TASK=";

/// The most bytes of an environment to read: Linux's default limit. A process with a larger one
/// counts as unmarked.
const LONGEST: u64 = 2 << 20;

/// A process as `/proc` shows it.
struct Process {
    parent: i32,
    zombie: bool,
    /// True if its environment or working directory is the attempt's.
    marked: bool,
}

/// How long [`end`] waits for killed processes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Kills the processes marked as an attempt's, and their descendants, until none is alive. Returns
/// their number.
///
/// Call this after waiting for the main process and before reading the worktree. Never kills this
/// process or its ancestors. Gives up on a process that cannot be killed after a few seconds.
pub fn end(attempt_dir: &Path) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut killed = BTreeSet::new();
    loop {
        // If processes cannot be listed, assume that some are alive.
        let alive = of_attempt(attempt_dir).map_or(true, |found| {
            for (pid, parent) in &found {
                if let Some(id) = Pid::from_raw(*pid) {
                    // Its parent may just have been killed, so that it has a new one.
                    kill_if(id, |now| now == *parent || found.contains_key(parent));
                    killed.insert(*pid);
                }
            }
            !found.is_empty()
        });
        // Check again after the last kill: a process started meanwhile is also marked.
        if !alive || Instant::now() > deadline {
            return killed.len();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns true if there is a process that [`end`] would kill.
pub fn are_left(attempt_dir: &Path) -> bool {
    of_attempt(attempt_dir).map_or(true, |found| !found.is_empty())
}

/// Kills all descendants of a process once, and returns their ids. Searching only direct children
/// would be slow against a long chain in which each process adopts the next one's children.
pub(crate) fn kill_all_below(top: Pid) -> BTreeSet<i32> {
    let below = descendants(top);
    for pid in below.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        kill_if(pid, |parent| parent == top.as_raw_nonzero().get() || below.contains(&parent));
    }
    below
}

/// Waits until killed processes are dead, at most a second: one that waits for a disk dies later.
pub(crate) fn wait_for(killed: &BTreeSet<i32>) {
    let deadline = Instant::now() + Duration::from_secs(1);
    while killed.iter().any(|pid| running_thread(*pid).is_some()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns all descendants of a process.
pub(crate) fn descendants(top: Pid) -> BTreeSet<i32> {
    let top = top.as_raw_nonzero().get();
    let mut found = BTreeSet::new();
    let mut next = vec![top];
    if children_of(&top.to_string()).is_some() {
        while let Some(pid) = next.pop() {
            let new = children_of(&pid.to_string()).unwrap_or_default();
            next.extend(new.into_iter().filter(|child| found.insert(*child)));
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

/// Returns the children of all threads of a process, or `None` if the kernel does not list them or
/// the process is gone.
fn children_of(process: &str) -> Option<BTreeSet<i32>> {
    let mut pids = BTreeSet::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let list = match fs::read_to_string(task.ok()?.path().join("children")) {
            Ok(list) => list,
            // The thread ended and its children moved to another thread, or the kernel has no such
            // list.
            Err(e) if e.kind() == io::ErrorKind::NotFound && Path::new("/proc/thread-self/children").exists() => {
                continue;
            }
            Err(_) => return None,
        };
        pids.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(pids)
}

/// Reads all processes, or fails if they cannot be listed.
fn scan(attempt_dir: &Path) -> io::Result<BTreeMap<i32, Process>> {
    let mark = [MARK, super::task_file(attempt_dir).as_os_str().as_bytes()].concat();
    let entries = fs::read_dir("/proc")?.collect::<io::Result<Vec<_>>>()?;
    let pids = entries.iter().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Ok(pids.filter_map(|pid| Some((pid, read(pid, &mark, attempt_dir)?))).collect())
}

fn read(pid: i32, mark: &[u8], attempt_dir: &Path) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses can contain anything, so count fields after its end.
    let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let mut fields = stat.get(after..)?.split(|byte| *byte == b' ').map(String::from_utf8_lossy);
    let has_first_ended = has_ended(&fields.next()?);
    let parent = fields.next()?.parse().ok()?;
    // An ended first thread shows no environment; the other threads do.
    let of = if has_first_ended { running_thread(pid) } else { Some(pid) };
    Some(Process {
        parent,
        zombie: of.is_none(),
        marked: of.is_some_and(|thread| {
            let environ = environment(pid, thread).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == mark)
                || fs::read_link(format!("/proc/{pid}/task/{thread}/cwd")).unwrap_or_default().starts_with(attempt_dir)
        }),
    })
}

fn environment(pid: i32, thread: i32) -> Option<Vec<u8>> {
    let mut environ = Vec::new();
    let file = File::open(format!("/proc/{pid}/task/{thread}/environ")).ok()?;
    file.take(LONGEST + 1).read_to_end(&mut environ).ok()?;
    (environ.len() as u64 <= LONGEST).then_some(environ)
}

/// Returns true if a thread in this state no longer runs. For a process the kernel shows the first
/// thread, which others can outlive.
fn has_ended(state: &str) -> bool {
    matches!(state, "Z" | "X")
}

/// Returns the ids of a process's threads.
pub(crate) fn threads(pid: i32) -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok())
}

/// Returns a thread of a process that has not ended, or `None` if all have.
fn running_thread(pid: i32) -> Option<i32> {
    threads(pid).find(|thread| state(pid, *thread).is_some_and(|state| !has_ended(&state)))
}

fn state(pid: i32, thread: i32) -> Option<String> {
    let stat = fs::read(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let state = stat.get(after..)?.split(|byte| *byte == b' ').next()?;
    Some(String::from_utf8_lossy(state).into_owned())
}

/// Returns the live processes of an attempt and their descendants, with their parents, except this
/// process and its ancestors.
fn of_attempt(attempt_dir: &Path) -> io::Result<BTreeMap<i32, i32>> {
    let processes = scan(attempt_dir)?;
    let mut spared = BTreeSet::new();
    let mut at = rustix::process::getpid().as_raw_nonzero().get();
    while at > 0 && spared.insert(at) {
        at = processes.get(&at).map_or(0, |process| process.parent);
    }
    let mut found: BTreeSet<i32> = BTreeSet::new();
    loop {
        let is_new = |pid: &i32, process: &Process| {
            !spared.contains(pid) && !found.contains(pid) && (process.marked || found.contains(&process.parent))
        };
        let new: Vec<i32> =
            processes.iter().filter(|(pid, process)| is_new(pid, process)).map(|(pid, _)| *pid).collect();
        if new.is_empty() {
            break;
        }
        found.extend(new);
    }
    let alive = found.into_iter().filter(|pid| !processes[pid].zombie);
    Ok(alive.map(|pid| (pid, processes[&pid].parent)).collect())
}

/// Kills a process if its parent is an expected one.
fn kill_if(pid: Pid, may_have: impl Fn(i32) -> bool) {
    let Ok(fd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The process id may have been reused before the open, but then with another parent, unless
    // that is also the attempt's.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let now = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<i32>().ok());
    if now.is_some_and(may_have) {
        let _ = rustix::process::pidfd_send_signal(fd, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn descendants_are_found_at_any_depth() {
        // Each waits for the next; the last prints its id.
        let script = "sh -c 'sh -c \"echo \\$\\$; read line; :\"; :'; :";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let last: i32 = line.trim().parse().unwrap();
        let below = descendants(Pid::from_child(&child));
        assert!(below.contains(&last) && below.len() == 2, "{below:?}, {last}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
