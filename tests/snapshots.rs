//! The snapshots: what is short stands in the test, what is long in a file, and each file belongs
//! to a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files below a folder whose names end like this.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_snapshot_belongs_to_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources: Vec<String> = files(&root.join("tests"), "rs")
        .into_iter()
        .map(|path| fs::read_to_string(path).expect("a source is text"))
        .collect();
    let stems = files(&root.join("snapshots"), "snap").into_iter();
    let names: BTreeSet<String> =
        stems.map(|path| path.file_stem().expect("it ends with .snap").to_string_lossy().into_owned()).collect();
    assert!(!names.is_empty(), "there are no snapshots");
    let is_named = |name: &&String| sources.iter().any(|source| source.contains(&format!("\"{name}\"")));
    let left: Vec<&String> = names.iter().filter(|name| !is_named(name)).collect();
    assert!(left.is_empty(), "no test names these files in snapshots/: {left:?}");
}
