//! Runs, in three rooms: [`query`] only reads them, [`import`] finds what a run takes from other
//! runs and threads, and [`operate`] alone appends to them.

pub mod import;
pub mod operate;
pub mod query;
