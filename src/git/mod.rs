//! Reads and writes the repository: objects, refs, commits, and the `git` program.

pub(crate) mod alternates;
pub mod archives;
pub mod bare_shape;
pub mod batch;
pub mod borrowed_repo;
pub mod bounded_read;
#[cfg(feature = "core")]
pub mod branches;
pub mod cancellation;
pub mod checkout;
pub mod cherry_pick;
pub mod codec;
mod discover;
pub mod edit;
pub mod extent;
pub(crate) mod file_facts;
mod flush;
pub mod folder;
pub mod fsck;
mod group_activity;
pub mod history;
pub mod hook;
pub mod ignored;
pub mod incoming;
pub mod isolated_config;
pub mod keep_pack;
mod limits;
pub mod listing;
mod memory_limit;
pub mod merge;
pub mod midx;
pub mod no_locks;
pub mod outgoing;
mod ownership;
mod pack;
mod pack_merge;
pub mod packed;
mod partial_checkout;
#[cfg(feature = "core")]
pub mod passing;
pub mod patch_paths;
pub mod porcelain;
pub mod private_files;
pub mod program;
#[cfg(feature = "core")]
pub mod protectable;
pub mod protected;
mod pushing;
pub mod quarantine;
pub mod quoted_path;
mod ref_lock;
pub mod ref_lookup;
pub mod refs;
pub mod remote;
pub mod restore_worktree;
pub mod retry;
pub mod save;
pub mod scratch_repo;
#[cfg(feature = "core")]
pub mod secret_scan;
pub mod snapshot;
pub mod start;
pub mod store;
mod symlink_path;
pub mod temporary;
#[cfg(feature = "core")]
pub mod tip;
pub mod trace;
pub mod tree;
pub mod unpacked_size;
mod variables;
pub mod verified_stream;
mod web;
pub mod work_tree;
pub mod writable;
