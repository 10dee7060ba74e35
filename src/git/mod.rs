//! Everything that touches the repository: objects, refs, commit bytes, and the `git` program.

pub mod batch;
pub mod codec;
pub mod edit;
mod gather;
pub mod history;
pub mod incoming;
pub mod kept;
pub mod merge;
mod pack;
pub mod porcelain;
pub mod program;
pub mod quarantine;
mod ref_lock;
pub mod refs;
pub mod remote;
pub mod save;
pub mod scratch;
pub mod store;
pub mod tree;
pub mod work_tree;
