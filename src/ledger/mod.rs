//! The chain of entries behind runs, threads and logs, with its signatures and Merkle tree.

#[cfg(feature = "full")]
pub mod archive;
#[cfg(feature = "full")]
pub mod chain;
#[cfg(feature = "full")]
pub mod log;
pub mod merkle;
#[cfg(feature = "full")]
pub mod prove;
pub mod sign;
