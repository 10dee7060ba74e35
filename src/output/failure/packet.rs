//! Failures of packets.

use git_handoff::thread::packet_operations::Error;

use super::Failure;

pub(super) fn packet(error: &Error) -> Option<Failure> {
    Some(match error {
        Error::Head(_) => Failure::of("head", error),
        _ => return None,
    })
}
