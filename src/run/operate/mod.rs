//! Operations on runs, from submission to seal: everything that appends to one.

pub mod adopt;
pub mod coordinate;
pub mod declined;
pub mod documents;
pub mod drivers;
pub mod extend;
pub mod line;
pub mod pace;
pub mod people;
pub mod remote_state;
pub mod revisions;
pub mod sharing;
pub mod statements;
pub mod steer;
pub mod submission;
pub mod submit;
pub mod via;

mod beats;
mod new_entry;
mod open;
mod open_verified;
mod protection;

pub use new_entry::NewEntry;
pub use open::{Error, LoneDriver, OpenRun, closed};
pub use open_verified::Denied;

use crate::ledger::chain::Writer;
use crate::verify::Now;

/// Returns the time by which the dates of other writers' entries are judged.
fn now(writer: &Writer) -> Now {
    Now { at: writer.clock.now(), pinned: writer.clock.is_pinned() }
}
