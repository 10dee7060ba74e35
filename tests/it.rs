//! The single integration-test binary.

mod apply;
mod doctor;
mod place;
mod plan;
mod verify;
mod worker;
