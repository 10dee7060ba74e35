//! One attempt: its worktree, the processes in it, and what they leave behind.
//!
//! [`workspace`] makes the worktree, [`inputs`] puts the consumed bytes into it, [`agent`] runs one command in it,
//! [`survivors`] ends whatever that command left running, [`capture`] takes the products, and [`salvage`] keeps the work of
//! an attempt that has none. [`live`] is what is seen of it meanwhile. [`attendant`] are the processes of ours around the command. [`filters`] says where the repository's own filters run meanwhile. Everything that a worker wrote is hostile: no git command and no library call ever finds a
//! repository through the worktree.

pub mod agent;
pub mod attendant;
pub mod capture;
pub mod disk;
pub mod filters;
mod folder;
pub mod host;
pub mod inputs;
pub mod live;
pub mod pipeline;
pub mod redact;
mod removal;
pub mod salvage;
pub mod sandbox;
pub mod supervisor;
pub mod survivors;
pub mod transcript;
pub mod workspace;
