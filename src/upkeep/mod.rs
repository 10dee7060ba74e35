//! Looking after a repository: what crashes left half-done, and what they left on the disk.

pub mod archive;
pub mod clean;
pub mod delete;
pub mod disk;
pub mod doctor;
pub mod operations;
mod replaced;
