//! Reads the worker's result file.

use std::path::PathBuf;

use super::Workspace;

/// The name of the result file in the worker's private folder.
const RESULT: &str = "result.json";

/// The most bytes to read.
const MOST: u64 = 1 << 20;

impl Workspace {
    /// Returns the path of the result file.
    pub fn result(&self) -> PathBuf {
        self.private.dir().join(RESULT)
    }

    /// Reads the result file, or returns `None` if it is missing, too large or not a regular file.
    pub fn read_result(&self) -> Option<Vec<u8>> {
        self.private.open().and_then(|folder| folder.read(RESULT, MOST)).ok()
    }

    /// Returns true if anything exists at its path.
    pub fn has_result(&self) -> bool {
        self.private.open().is_ok_and(|folder| folder.has(RESULT))
    }
}
