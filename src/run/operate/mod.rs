//! Operations on runs, from submission to seal: everything that appends to one.

pub mod adopt;
pub mod coordinate;
pub mod documents;
pub mod drivers;
pub mod extend;
pub mod pace;
pub mod people;
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
pub use open::{Error, OpenRun, closed};
pub use open_verified::Denied;
