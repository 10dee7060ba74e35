//! Measures whether a process group does anything: as Linux counts it, all that its processes read
//! and wrote, and their processor time.

use std::fs;

/// Returns a number that changes as long as a process group reads, writes or computes.
///
/// Where there is no `/proc`, and for processes of other users, nothing is counted.
pub(super) fn count(group: i32) -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let names = processes.flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    numbers.filter_map(|process| one(process, group)).fold(0, u64::wrapping_add)
}

/// Returns the activity of a process, or `None` if it is not in the group.
fn one(process: u32, group: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program comes before the last parenthesis, and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    if fields.get(2)?.parse::<i32>().ok()? != group {
        return None;
    }
    let ticks: u64 = fields.get(11..13)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let counted = io.lines().filter_map(|line| line.strip_prefix("rchar: ").or(line.strip_prefix("wchar: ")));
    Some(counted.filter_map(|bytes| bytes.parse::<u64>().ok()).fold(ticks, u64::wrapping_add))
}
