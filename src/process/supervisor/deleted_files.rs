//! Measures the size of open files without a name.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The most open files of one process to check.
const MOST: usize = 1 << 16;

/// The storage of a file without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// In memory, as with `memfd_create`.
    InMemory,
    /// On a disk.
    OnDisk,
}

/// Returns the total size in bytes of open files without a name.
pub(super) fn size(processes: &BTreeSet<i32>, place: Kept) -> u64 {
    let mut counted = BTreeSet::new();
    let mut sum = 0_u64;
    for pid in processes {
        let handles = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().take(MOST);
        for handle in handles.map(|handle| handle.path()) {
            let Ok(meta) = fs::metadata(&handle) else { continue };
            let counts = meta.is_file() && meta.nlink() == 0 && is_in_memory(&handle) == (place == Kept::InMemory);
            if counts && counted.insert((meta.dev(), meta.ino())) {
                sum = sum.saturating_add(meta.blocks() * 512);
            }
        }
    }
    sum
}

fn is_in_memory(handle: &Path) -> bool {
    let is_memory =
        |name: &[u8]| [&b"/memfd:"[..], b"/dev/zero (", b"/SYSV"].iter().any(|start| name.starts_with(start));
    fs::read_link(handle).is_ok_and(|target| is_memory(target.as_os_str().as_encoded_bytes()))
}
