//! Shares runs, threads and logs: push, fetch and bundles.
//!
//! Refs of chains are only fast-forwarded, both on the remote and in what was fetched from it. A
//! diverging head is refused and both heads are named. Data from elsewhere is untrusted until it is
//! verified.

pub mod anchor;
pub mod answers;
mod archived_runs;
pub mod bundle;
pub mod bundling;
mod compare;
mod evidence;
pub mod fetch;
mod fetch_objects;
pub mod protected_files;
pub mod push;
mod push_logs;
mod push_plan;
mod push_refs;
mod pushed_remotes;
mod remote_logs;
mod secret_check;
mod shared_log;
mod shared_refs;
mod stamps;
mod transcripts;
mod unwritten_logs;
mod update_remote;

pub use crate::model::place::{Kind, Place};
pub use compare::{Diverged, How, Rival};
pub use shared_refs::Space;
pub use unwritten_logs::Unwritten;
