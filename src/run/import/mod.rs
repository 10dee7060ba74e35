//! Finds what a run takes from other runs and threads, and where a product came from. Everything
//! is verified before it is used, and nothing is appended.

pub mod lineage;
pub mod reuse;
pub mod sources;
