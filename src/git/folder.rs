//! Lists folders and resolves paths. A folder that is absent or unreadable counts as empty.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the paths of the entries of a folder whose names match, sorted.
pub fn entries(folder: &Path, is: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| is(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Resolves all symbolic links of a path, or returns the path unchanged if that fails.
pub(super) fn absolute(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
