//! The single integration-test binary.

mod agents;
mod anchor;
mod apply;
mod bad_days;
mod cli;
mod common;
mod coordinate;
mod crash;
mod docs;
mod doctor;
mod document;
mod engine;
mod export;
mod layers;
mod mcp;
mod packet;
mod place;
mod plan;
mod prove;
mod race;
mod share;
mod tamper;
mod thread;
mod vectors;
mod verify;
mod worker;
