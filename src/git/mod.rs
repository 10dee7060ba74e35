//! Everything that touches the repository: objects, refs, commit bytes, and the `git` program.

pub mod codec;
pub mod merge;
pub mod program;
pub mod quarantine;
pub mod refs;
pub mod store;
pub mod work_tree;
