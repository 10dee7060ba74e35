//! The single integration-test binary.

mod agents;
mod bad_days;
mod cli;
mod common;
mod docs;
mod engine;
mod layers;
mod plan;
mod verify;
mod worker;
