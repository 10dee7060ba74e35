//! Hands work from one agent, person or machine to the next inside a git repository.

pub mod model;
pub mod plan;
pub mod validate;
