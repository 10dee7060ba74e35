//! Sharing: runs, threads and logs go to remotes, come from them, and travel in bundles.
//!
//! Chains are only ever fast-forwarded, on the remote and in what was fetched from it: a head that does not go on from the
//! one before is refused and both are named. What comes from elsewhere is hostile until verify has looked at it.

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
pub mod push;
mod rival;
mod screened;
mod stamps;
mod travelling;
mod wanted;

pub use crate::model::place::{Kind, Place};
pub use diverged::{Diverged, How};
pub use place::Space;
pub use rival::Rival;
