//! Progress of a run, for the command line to show.

use crate::ledger::chain::Link;
use crate::model::state::RunState;

/// Something to report while a run is driven.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// An entry was recorded, and the run has this state now.
    Recorded(&'a Link, &'a RunState),
    /// A sentence for the operator.
    Note(String),
}
