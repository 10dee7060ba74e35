//! The single integration-test binary.

mod worker;
