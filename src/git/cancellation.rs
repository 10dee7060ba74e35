//! Cancels a git command before it is done.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A request to cancel; once made, it stays.
#[derive(Clone)]
pub struct Cancellation(Arc<dyn Fn() -> bool + Send + Sync>);

impl Cancellation {
    /// Cancels when `is_requested` returns true. It is polled and must not block.
    pub fn when(is_requested: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_requested))
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

/// A limit of the time without any progress.
pub(super) struct Idle<F> {
    time: Duration,
    /// Returns a number that changes with progress.
    activity: F,
    last: Option<u64>,
    until: Instant,
}

impl<F: Fn() -> u64> Idle<F> {
    pub(super) fn new(time: Duration, activity: F) -> Self {
        Self { time, activity, last: None, until: Instant::now() + time }
    }

    /// Returns how long to wait until progress is looked for, or `None` if there was none since the
    /// last look.
    fn left(&mut self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Some(left);
        }
        let now = (self.activity)();
        if self.last.replace(now) == Some(now) {
            return None;
        }
        self.until = Instant::now() + self.time;
        Some(self.time)
    }
}

/// Waits for a command to end. Returns true if it must be killed first.
pub(super) fn outlasts(
    over: &mpsc::Receiver<()>,
    within: Option<Duration>,
    mut idle: Option<Idle<impl Fn() -> u64>>,
    stop: Option<&Cancellation>,
) -> bool {
    let mut until = within.and_then(|time| Instant::now().checked_add(time));
    let mut is_stopped = false;
    loop {
        let quiet = match idle.as_mut().map(Idle::left) {
            Some(None) => return true,
            Some(Some(left)) => left,
            None => Duration::MAX,
        };
        if let Some(stop) = stop.filter(|stop| !is_stopped && stop.is_requested()) {
            is_stopped = stop.is_requested();
            let soon = Instant::now() + GRACE;
            until = Some(until.map_or(soon, |until| until.min(soon)));
        }
        let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return true;
        }
        let wait = if stop.is_some() && !is_stopped { left.min(LOOK) } else { left }.min(quiet);
        if over.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
            return false;
        }
    }
}
