//! Maintenance: recovery from crashes, and disk space.

pub mod archive;
pub mod clean;
pub mod delete;
pub mod disk;
pub mod doctor;
pub mod operations;
pub mod protection;
mod replaced;
pub mod setup;
