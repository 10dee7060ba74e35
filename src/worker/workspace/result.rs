//! What a worker wrote as its result.

use std::path::PathBuf;

use super::Workspace;

/// The file that the worker may write its result to, beside its other private folders.
const RESULT: &str = "result.json";

/// The most that is read of it.
const MOST: u64 = 1 << 20;

impl Workspace {
    /// Returns the file that the worker may write its result to.
    pub fn result(&self) -> PathBuf {
        self.private.dir().join(RESULT)
    }

    /// Reads what the worker wrote as its result: none where it wrote nothing, or something that is no small plain file.
    pub fn read_result(&self) -> Option<Vec<u8>> {
        self.private.open().and_then(|folder| folder.read(RESULT, MOST)).ok()
    }

    /// Returns whether something lies where that is read, whatever it is.
    pub fn has_result(&self) -> bool {
        self.private.open().is_ok_and(|folder| folder.has(RESULT))
    }
}
