//! Keeps results that could not be recorded because this machine lacks something, such as disk
//! space.

use crate::run::operate::new_entry::NewEntry;

use super::{Applying, Error, OpenRun};

impl OpenRun {
    /// Keeps the results among entries that could not be recorded. The driver decides the others
    /// again.
    pub(super) fn keep_unrecorded(&mut self, entries: Vec<NewEntry>) {
        self.unrecorded.extend(entries.into_iter().filter(NewEntry::is_result));
    }

    /// Reads the state again after an error, and stages the results that could not be recorded and
    /// that it still allows. After another error they are still kept.
    pub fn recover(&mut self) -> Result<(), Error> {
        let staged = std::mem::take(&mut self.staged).entries;
        self.keep_unrecorded(staged);
        self.drop_staged()?;
        let results = std::mem::take(&mut self.unrecorded);
        self.apply(&results, Applying::Legal)
    }
}
