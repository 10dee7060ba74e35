//! Tells a remote that is busy or away for a moment from one that cannot be used.

use std::thread;
use std::time::{Duration, Instant};

use super::porcelain::http_status;

/// How long to try a remote that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// Words in git's messages, in lower case, about a connection that failed for now.
const WORDS: [&str; 10] = [
    "connection reset",
    "connection timed out",
    "connection refused",
    "could not resolve host",
    "temporary failure in name resolution",
    "unexpected disconnect",
    "hung up unexpectedly",
    "early eof",
    "operation timed out",
    "git was not done after",
];

/// Calls `attempt` until it succeeds, or fails for a reason that does not pass, for half a minute.
///
/// Drivers that start together meet the limits of a host together.
pub fn insist<T, E>(mut attempt: impl FnMut() -> Result<T, E>, passes: impl Fn(&E) -> bool) -> Result<T, E> {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if Instant::now() < until && passes(&error) => thread::sleep(PAUSE),
            other => return other,
        }
    }
}

/// Returns true if git's message says that the remote may answer soon.
pub fn is_passing(stderr: &str) -> bool {
    let lower = stderr.to_ascii_lowercase();
    // A path that holds no repository also ends the connection.
    let is_absent = lower.contains("does not appear to be a git repository") || lower.contains("not found");
    let is_busy = http_status(stderr).is_some_and(|status| status == 429 || status >= 500);
    is_busy || (!is_absent && WORDS.iter().any(|words| lower.contains(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_host_is_told_from_a_wrong_address() {
        for stderr in [
            "fatal: unable to access 'http://x/': The requested URL returned error: 503",
            "error: RPC failed; HTTP 429 curl 22 The requested URL returned error: 429",
            "ssh: connect to host x port 22: Connection refused\nfatal: Could not read from remote repository.",
        ] {
            assert!(is_passing(stderr), "{stderr}");
        }
        for stderr in [
            "fatal: unable to access 'http://x/': The requested URL returned error: 403",
            "fatal: '/no' does not appear to be a git repository\nfatal: the remote end hung up unexpectedly",
            "[remote rejected] (pre-receive hook declined)",
        ] {
            assert!(!is_passing(stderr), "{stderr}");
        }
    }
}
