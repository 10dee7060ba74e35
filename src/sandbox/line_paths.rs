//! Finds files named in a configured command line, which its workers may read.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the absolute and home-relative paths in a command line that are files.
///
/// They come from the operator's configuration, never from a plan.
pub fn named_in(command: &str, home: Option<&Path>) -> Vec<PathBuf> {
    let words = command.split(|c: char| c.is_whitespace() || "\"';|&()<>`=".contains(c));
    let path = |word: &str| {
        let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| word.strip_prefix(start));
        match (below, home) {
            (Some(below), Some(home)) => Some(home.join(below)),
            _ => Some(PathBuf::from(word)).filter(|path| path.is_absolute()),
        }
    };
    // Kernel files are each process's own.
    words
        .filter_map(path)
        .filter(|path| !["/proc", "/sys", "/dev"].iter().any(|top| path.starts_with(top)) && path.is_file())
        .collect()
}

/// Returns true if a path in a work tree leads elsewhere through a link, which a commit could
/// create.
pub(super) fn is_led_away(path: &Path, real: &Path, work_trees: &[PathBuf]) -> bool {
    let trees: Vec<PathBuf> = work_trees.iter().filter_map(|tree| fs::canonicalize(tree).ok()).collect();
    let inside = path.ancestors().skip(1).find_map(|above| {
        fs::canonicalize(above).ok().filter(|it| trees.contains(it)).zip(path.strip_prefix(above).ok())
    });
    inside.is_some_and(|(tree, below)| real != tree.join(below))
}
