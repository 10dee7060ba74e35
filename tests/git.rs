//! What git makes of what we wrote, and we of what git makes: stock git, and every kind of repository.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod carrying;
mod ownership;
mod reading;
mod repositories;
