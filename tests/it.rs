//! The single integration-test binary.

mod agents;
mod cli;
mod common;
mod docs;
mod engine;
mod layers;
mod plan;
mod verify;
mod worker;
