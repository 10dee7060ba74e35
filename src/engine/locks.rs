//! Where the locks of drivers lie: one folder for each kind, so that no name of one is a name of another.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The holds on runs, by their ids.
pub(super) const RUNS: &str = "runs";
/// The queues.
pub(super) const QUEUES: &str = "queues";
/// The resources.
pub(super) const RESOURCES: &str = "resources";

/// The folder of all.
const LOCKS: &str = "locks";

/// The last ticket that was drawn.
const TICKETS: &str = "tickets";

/// Returns the folder of one kind.
pub(super) fn folder(common_dir: &Path, kind: &str) -> PathBuf {
    common_dir.join("handoff").join(LOCKS).join(kind)
}

/// Returns the file that says which ticket was drawn last.
pub(super) fn tickets(common_dir: &Path) -> PathBuf {
    folder(common_dir, TICKETS)
}

/// Makes a folder of locks. A file in the place of a kind's folder is what a run of that name left there once, and is taken away.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    if fs::create_dir_all(dir).is_ok() {
        return Ok(());
    }
    let kind = |path: &&Path| path.parent().is_some_and(|parent| parent.ends_with(Path::new("handoff").join(LOCKS)));
    if let Some(old) = dir.ancestors().find(kind).filter(|old| old.is_file()) {
        // Where another was faster, its folder is not removed by this.
        let _ = fs::remove_file(old);
    }
    fs::create_dir_all(dir)
}
