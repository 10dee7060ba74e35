//! The single integration-test binary.

mod agents;
mod apply;
mod cli;
mod common;
mod docs;
mod doctor;
mod layers;
mod packet;
mod place;
mod plan;
mod verify;
mod worker;
