//! Drives a run: what comes next is decided by a pure function and done by one conductor.

pub mod command;
pub mod decide;
pub mod hold;
pub mod needs;
pub mod stranded;
pub mod tick;

mod attempt;
mod keep;
mod outcome;
mod prepare;
mod products;
