//! Cancels a git command before it is done.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A request to cancel; once made, it stays.
#[derive(Clone)]
pub struct Cancellation(Arc<dyn Fn() -> bool + Send + Sync>);

impl Cancellation {
    /// Cancels when `said` returns true. It is polled and must not block.
    pub fn when(said: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(said))
    }

    /// Never cancels.
    pub fn never() -> Self {
        Self::when(|| false)
    }

    /// Returns true if cancellation was requested.
    pub fn is_requested(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancellation").field(&self.is_requested()).finish()
    }
}

/// How long a command may continue after a cancellation, in case it is almost done.
const GRACE: Duration = Duration::from_secs(5);

/// How often a command polls for a cancellation.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for a command to end. Returns true if it must be killed first.
pub(super) fn outlasts(over: &mpsc::Receiver<()>, within: Option<Duration>, stop: Option<&Cancellation>) -> bool {
    let mut until = within.and_then(|time| Instant::now().checked_add(time));
    let mut said = false;
    loop {
        if let Some(stop) = stop.filter(|stop| !said && stop.is_requested()) {
            said = stop.is_requested();
            let soon = Instant::now() + GRACE;
            until = Some(until.map_or(soon, |until| until.min(soon)));
        }
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return true;
        }
        let wait = if stop.is_some() && !said { left.min(LOOK) } else { left };
        if over.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
            return false;
        }
    }
}
