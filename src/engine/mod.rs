//! Drives a run: what comes next is decided by a pure function and done by one driver.

pub mod claims;
pub mod command;
pub mod decide;
pub mod drive;
mod driving;
pub mod event;
pub mod hold;
pub mod machine;
pub mod needs;
pub mod operations;
pub mod recover;
pub mod secrets;

mod attempt;
mod ground;
mod locks;
mod mise;
mod outcome;
mod outside;
mod prepare;
mod products;
mod retain;
