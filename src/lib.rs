//! Hands work from one agent, person or machine to the next inside a git repository, so that anyone can prove afterwards
//! who made what from what.

pub mod chain;
pub mod clock;
pub mod config;
pub mod engine;
pub mod event;
pub mod git;
pub mod log;
pub mod merkle;
pub mod model;
pub mod plan;
pub mod run;
pub mod sign;
pub mod worker;
