//! Runs one attempt: its worktree, its processes, and the capture of its products.
//!
//! [`workspace`] creates the worktree, [`inputs`] writes the consumed products into it, [`agent`]
//! runs one command, [`survivors`] kills processes that the command left, [`capture`] takes the
//! products, and [`salvage`] saves the work of an attempt without products. [`live`] shows the
//! latest output, [`attendant`] starts our helper processes, and [`filters`] decides where the
//! repository's filters run. Everything that a worker wrote is hostile: no git command and no
//! library call ever discovers a repository through the worktree.

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
