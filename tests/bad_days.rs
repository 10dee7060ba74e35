//! Days on which everything goes wrong: the executor, the operator, the disk, the ref, git itself.
//! Always a clear message, a run that can be resumed or that truthfully failed, a sound repository,
//! and nothing left behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disks;
mod executors;
mod explosions;
mod memory;
pub(crate) mod mount;
mod outcomes;
mod power;
mod refs;
mod scale;
mod signals;
mod steering;
