//! Failures of packets.

use git_handoff::thread::packet_operations::Error;

use super::Failure;

pub(super) fn packet(error: &Error) -> Failure {
    Failure::of("head", error)
}
