//! Operations on runs, from submission to seal, and queries about them.

pub mod adopt;
pub mod attempts;
pub mod coordinate;
pub mod difference;
pub mod documents;
pub mod drivers;
pub mod extend;
pub mod follow;
pub mod imports;
pub mod lineage;
pub mod list;
pub mod log_entry;
pub(crate) mod marks;
pub mod pace;
pub mod people;
pub mod piece;
pub mod proving;
pub mod reuse;
pub mod revisions;
pub mod sharing;
pub mod show;
pub mod statements;
pub mod steer;
pub mod submission;
pub mod submit;
pub mod target;
pub mod times;
pub mod trace_event;
pub mod usage;
pub mod via;
pub mod waiting;

mod item_status;
mod new_entry;
mod open;
mod open_verified;
mod stopped_rules;
mod verified_run;
mod view;

pub use new_entry::NewEntry;
pub use open::{Error, OpenRun, closed};
pub use open_verified::Denied;
pub use stopped_rules::Unreadable;
pub use target::Target;
pub use verified_run::{Blob, VerifiedRun};
pub use view::{View, view};
