//! What lies in a folder, by its names. One that is not there, or cannot be read, holds nothing.

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
