//! What files take that have no name any more and live as long as somebody has them open or mapped.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::worker::survivors;

/// How the tables lie in which a process's open files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tables {
    /// All threads of a process have the same.
    OfProcesses,
    /// Each thread can have its own.
    OfThreads,
}

/// Returns what files in memory take that processes hold open, in bytes, and whether all was looked at before `until`.
///
/// Such are made without a name (`memfd_create`), or shared without a file.
pub(super) fn in_memory(processes: &BTreeSet<i32>, tables: Tables, until: Instant) -> (u64, bool) {
    sum(processes.iter().flat_map(|pid| open(*pid, tables)), is_in_memory, until)
}

/// Returns the same of files on the disk that processes hold open or have mapped.
pub(super) fn on_disk(processes: &BTreeSet<i32>, tables: Tables, until: Instant) -> (u64, bool) {
    let handles = processes.iter().flat_map(|pid| open(*pid, tables).chain(mapped(*pid)));
    sum(handles, |handle| !is_in_memory(handle), until)
}

/// Adds up what is wanted of what has no name.
fn sum(handles: impl Iterator<Item = PathBuf>, wanted: fn(&Path) -> bool, until: Instant) -> (u64, bool) {
    let mut seen = BTreeSet::new();
    let mut sum = 0_u64;
    for handle in handles {
        // There are as many as somebody likes, who pays little for each.
        if Instant::now() > until {
            return (sum, false);
        }
        let Ok(meta) = fs::metadata(&handle) else { continue };
        if meta.is_file() && meta.nlink() == 0 && wanted(&handle) && seen.insert((meta.dev(), meta.ino())) {
            sum = sum.saturating_add(meta.blocks() * 512);
        }
    }
    (sum, true)
}

/// Returns the handles that a process has open.
fn open(pid: i32, tables: Tables) -> impl Iterator<Item = PathBuf> {
    let table = move |thread| {
        // A thread that ended has none, also where it is the first and others go on.
        let mut table = entries(format!("/proc/{pid}/task/{thread}/fd")).peekable();
        table.peek().is_some().then_some(table)
    };
    let most = if tables == Tables::OfProcesses { 1 } else { usize::MAX };
    survivors::threads(pid).filter_map(table).take(most).flatten()
}

/// Returns the handles of the files that a process has mapped. The kernel lets only who may do as root does look at what they lead to.
///
/// Their names are all that is read: those of the files themselves are as long as somebody likes.
fn mapped(pid: i32) -> impl Iterator<Item = PathBuf> {
    entries(format!("/proc/{pid}/map_files"))
}

fn entries(folder: String) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry: DirEntry| entry.path())
}

fn is_in_memory(handle: &Path) -> bool {
    let is_memory =
        |name: &[u8]| [&b"/memfd:"[..], b"/dev/zero (", b"/SYSV"].iter().any(|start| name.starts_with(start));
    fs::read_link(handle).is_ok_and(|target| is_memory(target.as_os_str().as_encoded_bytes()))
}
