//! Has all of an attempt's processes stand still, so that nothing changes while it is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::watching::all_below_us;
use crate::worker::survivors;

/// How long it may take until all stand still, and did while somebody looked: the kernel stops each where it gets to run.
const LONGEST: Duration = Duration::from_secs(5);

/// How long they are left to it between two looks at them.
const PAUSE: Duration = Duration::from_millis(1);

/// Each thread of each process, with how often it gave up a processor.
type Standing = BTreeMap<(i32, i32), u64>;

/// Has none of the attempt's processes run meanwhile; none where they cannot be brought to that.
///
/// Those that do not stop, or are woken again, by a timer of theirs or by one that was not stopped yet, are stopped again. Who stood
/// still before does so afterwards.
pub(super) fn at_rest<T>(look: impl Fn() -> T) -> Option<T> {
    let mut stopped = BTreeSet::new();
    let seen = seen_at_rest(&look, &mut stopped);
    // The younger first: nobody is to go on who then finds a child stopped, and takes that for news.
    for pid in stopped.into_iter().rev() {
        let _ = signal(pid, Signal::CONT);
    }
    seen
}

fn seen_at_rest<T>(look: impl Fn() -> T, stopped: &mut BTreeSet<i32>) -> Option<T> {
    let until = Instant::now() + LONGEST;
    while Instant::now() < until {
        if let Some(before) = stop(stopped) {
            let seen = look();
            // Who ran meanwhile gave up a processor once more, or has it now.
            if stop(stopped).is_some_and(|after| after == before) {
                return Some(seen);
            }
        } else {
            std::thread::sleep(PAUSE);
        }
    }
    None
}

/// Stops whoever is not stopped; returns all if they stand still now.
///
/// No signal goes to one that stands still: somebody could wake it between the two, whom it would be lost for.
fn stop(stopped: &mut BTreeSet<i32>) -> Option<Standing> {
    let mut standing = Some(Standing::new());
    for pid in all_below_us() {
        let threads: Vec<_> = survivors::threads(pid).map(|thread| (thread, survivors::run(pid, thread))).collect();
        let is_stopped = threads.iter().all(|(_, run)| run.is_none_or(|run| run.is_stopped));
        // One that is another's is none that we can stop; there are such only where nothing confines the worker.
        if !is_stopped && signal(pid, Signal::STOP) == Err(Errno::PERM) {
            continue;
        }
        // One that was not asked to before is about to.
        let is_new = !is_stopped && stopped.insert(pid);
        for (thread, run) in threads {
            match (run, &mut standing) {
                (Some(run), Some(all)) if !is_new && (run.is_stopped || run.waits) => {
                    all.insert((pid, thread), run.switches);
                }
                (None, _) => {}
                _ => standing = None,
            }
        }
    }
    standing
}

fn signal(pid: i32, signal: Signal) -> Result<(), Errno> {
    rustix::process::kill_process(Pid::from_raw(pid).ok_or(Errno::SRCH)?, signal)
}
