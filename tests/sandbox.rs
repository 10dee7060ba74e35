//! The limits of a confined worker, and the programs that work in it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod above;
mod agent_folders;
mod attacks;
mod caches;
mod configured;
pub(crate) mod filters;
mod given;
mod hidden_files;
mod kernel_files;
mod layers;
mod limits;
mod links;
mod looks;
mod planted;
mod programs;
mod reach;
mod recorded;
mod refused;
mod remotes;
pub(crate) mod scene;
mod stories;
mod tools;
mod worktrees;
