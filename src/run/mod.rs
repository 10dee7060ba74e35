//! A run, from its submission to its seal: opened, extended, given documents, looked at, and what is taken out of it.

pub mod adopt;
pub mod coordinate;
pub mod difference;
pub mod document;
pub mod documents;
pub mod following;
pub mod growth;
pub mod imports;
pub mod lineage;
pub mod list;
pub mod logged;
pub mod overview;
pub mod people;
pub mod piece;
pub mod proving;
pub mod reuse;
pub mod show;
pub mod steer;
pub mod submission;
pub mod submit;
pub mod taking;
pub mod target;
pub mod times;
pub mod waiting;

mod new_entry;
mod open;
mod proven;
mod stops;
mod vetted;
mod view;

pub use new_entry::NewEntry;
pub use open::{Error, OpenRun, closed};
pub use proven::Denied;
pub use stops::Unreadable;
pub use target::Target;
pub use vetted::{Blob, Vetted};
pub use view::{View, view};
