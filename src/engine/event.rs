//! What the library tells while it works; only the command line shows it.

use crate::ledger::chain::Link;

/// Something worth telling.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// An entry was recorded and is visible.
    Recorded(&'a Link),
    /// Something that is not an entry, as a sentence.
    Note(String),
}
