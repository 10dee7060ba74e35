//! What lies in a folder, by its names, and where it lies itself. One that is not there, or cannot be read, holds nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the paths of what a folder holds under names that are of some form, in order.
pub fn entries(folder: &Path, is: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| is(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns where a path leads, without links; the path itself where that cannot be said.
pub(super) fn absolute(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
