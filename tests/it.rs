//! The single integration-test binary.

mod plan;
mod verify;
mod worker;
