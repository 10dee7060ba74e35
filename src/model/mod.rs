//! Plain data: what a plan, a name or a problem is; no I/O, no clock, no randomness.

pub mod catalog;
pub mod json;
pub mod name;
pub mod plan;
pub mod problem;
pub(crate) mod read;
