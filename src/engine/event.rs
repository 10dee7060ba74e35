//! What the library tells while it works; only the command line shows it.

use crate::ledger::chain::Link;
use crate::model::state::RunState;

/// Something worth telling.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// An entry was recorded and is visible, and the run stands so.
    Recorded(&'a Link, &'a RunState),
    /// Something that is not an entry, as a sentence.
    Note(String),
}
