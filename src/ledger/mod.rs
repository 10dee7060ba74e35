//! The chain of entries behind runs, threads and logs, with its signatures and Merkle tree.

#[cfg(feature = "core")]
pub mod archive;
#[cfg(feature = "core")]
pub mod beat;
#[cfg(feature = "core")]
pub mod chain;
#[cfg(feature = "core")]
pub mod log;
pub mod merkle;
#[cfg(feature = "core")]
pub mod prove;
pub mod sign;
