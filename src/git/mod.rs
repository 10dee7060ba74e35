//! Everything that touches the repository: objects, refs, commit bytes, and the `git` program.

pub mod ahead;
mod alternates;
pub mod apart;
pub mod aside;
pub mod batch;
pub mod checked;
pub mod codec;
pub mod edit;
pub mod folder;
mod gather;
pub mod history;
pub mod incoming;
pub mod kept;
pub mod merge;
pub mod midx;
pub mod outgoing;
mod pack;
pub mod packed;
pub mod porcelain;
pub mod program;
pub mod quarantine;
pub mod quoted_path;
pub mod race;
mod ref_lock;
pub mod refs;
pub mod remote;
mod room;
pub mod save;
pub mod scratch;
#[cfg(feature = "full")]
pub mod screen;
pub mod stop;
pub mod store;
pub mod temporary;
pub mod tree;
pub mod whole;
pub mod work_tree;
