//! What confines a worker.

/// What a manifest records where nothing confines the worker.
pub const NONE: &str = "none";

/// Returns what this build enforces, as manifests record it: nothing yet.
pub fn enforced() -> &'static str {
    NONE
}
