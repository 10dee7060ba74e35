//! The pure scheduler of the engine, and the environment of an attempt.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod attempt;
mod given;
mod presets;
mod programs;
mod schedule;
mod surroundings;
mod together;
