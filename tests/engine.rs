//! What comes next: the pure middle of the engine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod schedule;
mod together;
