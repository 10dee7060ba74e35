//! Lays out the lock files: one folder for each kind, so that names of two kinds never clash.

use std::path::{Path, PathBuf};

pub(super) const QUEUES: &str = "queues";
pub(super) const RESOURCES: &str = "resources";
/// The number of the last ticket.
pub(super) const TICKETS: &str = "tickets";

/// Returns the folder of one kind.
pub(super) fn folder(common_dir: &Path, kind: &str) -> PathBuf {
    common_dir.join("handoff/locks").join(kind)
}
