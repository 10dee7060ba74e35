//! Hands work from one agent, person or machine to the next inside a git repository, so that anyone can prove afterwards
//! who made what from what.

pub mod chain;
pub mod clock;
pub mod git;
pub mod merkle;
pub mod model;
pub mod sign;
pub mod worker;
