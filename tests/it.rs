//! The single integration-test binary.

mod agents;
mod apply;
mod cli;
mod common;
mod docs;
mod doctor;
mod layers;
mod place;
mod plan;
mod share;
mod verify;
mod worker;
