//! What comes next, which is the pure middle of the engine, and what an attempt is given.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod given;
mod schedule;
mod together;
