//! Interoperation with stock git, in every kind of repository.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod carrying;
mod ownership;
mod reading;
mod repositories;
