//! The single integration-test binary.

mod agents;
mod apply;
mod bad_days;
mod cli;
mod common;
mod docs;
mod doctor;
mod engine;
mod export;
mod layers;
mod place;
mod plan;
mod share;
mod verify;
mod worker;
