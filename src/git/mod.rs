//! Everything that touches the repository: objects, refs, commit bytes, and the `git` program.

pub mod apart;
pub mod checked;
pub mod codec;
pub mod edit;
pub mod history;
mod incoming;
pub mod merge;
pub mod packed;
pub mod porcelain;
pub mod program;
pub mod quarantine;
pub mod refs;
pub mod remote;
pub mod save;
pub mod scratch;
pub mod stop;
pub mod store;
pub mod tree;
pub mod work_tree;
