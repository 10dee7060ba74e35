//! The single integration-test binary.

mod cli;
mod common;
mod layers;
mod plan;
mod verify;
mod worker;
