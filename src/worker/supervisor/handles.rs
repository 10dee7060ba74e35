//! How many files an attempt has open: the kernel bounds that for each process, and for the machine as a whole.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

use super::watching::numbers;

/// One attempt may have such a part of what all processes of the machine may have open together. Who takes all keeps everybody else from
/// opening anything, the driver as well.
const PART: u64 = 8;

/// As many it may have in any case.
const LEAST: u64 = 1 << 16;

/// What an open file takes of the kernel's memory, in bytes, which no process shows.
const EACH: u64 = 256;

/// Returns how many files processes have open. Where the kernel does not say (before Linux 6.2), it is how many they have room for.
pub(super) fn count(processes: &BTreeSet<i32>) -> u64 {
    let open = |pid: &i32| {
        let told = fs::metadata(format!("/proc/{pid}/fd")).map_or(0, |meta| meta.len());
        if told > 0 { told } else { room(*pid) }
    };
    processes.iter().map(open).sum()
}

/// Returns how many files a process has room for.
fn room(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    numbers(&status, &["FDSize:"])
}

/// Returns what so many open files take of the kernel's memory, in bytes.
pub(super) fn memory(open: u64) -> u64 {
    open.saturating_mul(EACH)
}

/// Returns how many files one attempt may have open.
pub(super) fn most() -> u64 {
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let all = fs::read_to_string("/proc/sys/fs/file-max").ok();
        let all = all.and_then(|all| all.trim().parse::<u64>().ok()).unwrap_or(u64::MAX);
        (all / PART).max(LEAST)
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn open_files_are_counted_whatever_they_are() {
        let mut child = Command::new("sh");
        child.args(["-c", "exec 3</dev/null 4</dev/null 5</dev/null; echo; exec sleep 60"]);
        let mut child = child.stdout(Stdio::piped()).spawn().expect("there is a shell");
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().expect("it is piped"), &mut line).expect("it says so");
        let pid = i32::try_from(child.id()).expect("numbers of processes are small");
        let (open, has_room) = (count(&BTreeSet::from([pid])), room(pid));
        child.kill().and_then(|()| child.wait()).expect("it is ours");
        assert!((6..=has_room).contains(&open), "{open} of {has_room}");
        assert!(most() >= LEAST && memory(4) == 1024);
    }
}
