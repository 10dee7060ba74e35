//! Shares runs, threads and logs: push, fetch and bundles.
//!
//! Refs of chains are only fast-forwarded, both on the remote and in what was fetched from it. A
//! diverging head is refused and both heads are named. Data from elsewhere is untrusted until it is
//! verified.

pub mod anchor;
pub mod answers;
mod archived;
mod bring;
pub mod bundle;
pub mod bundling;
mod diverged;
mod evidence;
pub mod fetch;
mod folded;
mod hand_over;
mod outbound;
mod own_logs;
mod place;
mod planned;
pub mod protected_files;
pub mod push;
mod remembered;
mod rival;
mod screened;
mod stamps;
mod transcripts;
mod travelling;
mod unwritten;
mod wanted;

pub use crate::model::place::{Kind, Place};
pub use diverged::{Diverged, How};
pub use place::Space;
pub use rival::Rival;
pub use unwritten::Unwritten;
