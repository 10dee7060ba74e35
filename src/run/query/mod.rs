//! Reads runs, ours and fetched ones: their names, states, products and history.

pub mod attempts;
pub mod changes;
pub mod declined;
pub mod difference;
pub mod documents;
pub mod driver_lock;
pub mod estimate;
pub mod follow;
pub mod list;
pub mod log_entry;
pub mod piece;
pub mod proving;
pub mod pushed;
pub mod remote_read;
pub mod revisions;
pub mod saved;
mod sealed_summaries;
pub mod shares;
pub mod sharing;
pub mod show;
pub mod target;
pub mod test_output;
pub mod times;
pub mod trace_event;
pub mod usage;
pub mod waiting;
pub mod work;

pub(crate) mod stopped_rules;

mod check_places;
mod item_record;
mod item_status;
mod verified_run;
pub(crate) mod view;

pub use stopped_rules::Unreadable;
pub use target::Target;
pub use verified_run::{Blob, VerifiedRun};
pub use view::{Error, View, is_sealed, view};
