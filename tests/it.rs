//! The single integration-test binary.

mod agents;
mod bad_days;
mod cli;
mod common;
mod crash;
mod docs;
mod engine;
mod layers;
mod plan;
mod race;
mod verify;
mod worker;
