//! The chain that runs, threads and the repository's log are: entries, what seals them, and who signed them.

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
