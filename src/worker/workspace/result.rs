//! What a worker wrote as its result.

use std::path::PathBuf;

use super::Workspace;

/// The folder that the worker may write its result to, and the file in it.
pub(super) const RESULTS: &str = "result";
const RESULT: &str = "result.json";

/// The most that is read of it.
const MOST: u64 = 1 << 20;

impl Workspace {
    /// Returns the folder of the file that the worker may write its result to.
    pub fn results(&self) -> PathBuf {
        self.dir.join(RESULTS)
    }

    /// Returns the file that the worker may write its result to.
    pub fn result(&self) -> PathBuf {
        self.results().join(RESULT)
    }

    /// Reads what the worker wrote as its result: none where it wrote nothing, or something that is no small plain file.
    pub fn read_result(&self) -> Option<Vec<u8>> {
        self.folder.folder(RESULTS).and_then(|folder| folder.read(RESULT, MOST)).ok()
    }

    /// Returns whether something lies where that is read, whatever it is.
    pub fn has_result(&self) -> bool {
        self.folder.folder(RESULTS).is_ok_and(|folder| folder.has(RESULT))
    }
}
