//! Notes of operations for the person who called them.

use std::mem;
use std::sync::PoisonError;

use super::Repository;

impl Repository {
    /// Adds a note.
    pub(crate) fn note(&self, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Returns the notes since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
