//! What one process that checks may use.

use std::time::Duration;

/// The most memory, in bytes of address space.
pub(super) const MEMORY: u64 = 1 << 30;

/// The most seconds of computing.
pub(super) const SECONDS: u64 = 10;

/// How long the answers are waited for, however little of it is computing.
pub(super) const WAIT: Duration = Duration::from_secs(60);

/// Takes away from this process, for good, what it may not have; where the system can.
///
/// A limit that is lower already stays.
pub(super) fn enter() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        for (resource, most) in [(Resource::As, MEMORY), (Resource::Cpu, SECONDS), (Resource::Core, 0)] {
            let now = getrlimit(resource);
            let lower = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
            // Where one cannot be set, the others and the time that is waited still hold.
            let _ = setrlimit(resource, Rlimit { current: lower(now.current), maximum: lower(now.maximum) });
        }
    }
}
