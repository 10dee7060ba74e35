//! Decides when another driver of a shared run counts as lost: pure.
//!
//! Only healthy time counts: time between two reads of the remote that show the other driver's beat
//! unchanged, while this driver's own beats were accepted. So an outage
//! of the remote or of this driver loses no driver.

use std::time::{Duration, Instant};

use crate::model::digest::Oid;
use crate::model::driver::RunShared;

/// The number of own beats that must be accepted while another driver is silent.
const OWN_BEATS: u64 = 3;

/// A driver as one read of the remote shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// When the remote was read.
    pub(super) read: Instant,
    /// The driver's beat.
    pub(super) beat: Option<Oid>,
    /// When an entry of the driver was last read.
    pub(super) entry: Option<Instant>,
    /// The number of own beats that the remote accepted so far.
    pub(super) own_beats: u64,
}

/// The silence of one driver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    last: Sight,
    /// The number of own beats when the silence began.
    since: u64,
    healthy: Duration,
    /// Time that counts once another own beat is accepted.
    pending: Duration,
}

impl Silence {
    /// Begins with a first sight of the driver.
    pub(super) fn new(sight: Sight) -> Self {
        Self { last: sight, since: sight.own_beats, healthy: Duration::ZERO, pending: Duration::ZERO }
    }

    /// Adds a read of the remote; `longest` is the longest time between two reads that counts.
    pub(super) fn look(&mut self, sight: Sight, longest: Duration, heartbeat: Duration) {
        if sight.read == self.last.read {
            return;
        }
        if sight.beat != self.last.beat || sight.entry != self.last.entry {
            *self = Self::new(sight);
            return;
        }
        let passed = sight.read.saturating_duration_since(self.last.read).min(longest);
        // While the remote refuses beats, time does not add up.
        self.pending = (self.pending + passed).min(longest.max(heartbeat * 2));
        if sight.own_beats > self.last.own_beats {
            self.healthy += std::mem::take(&mut self.pending);
        }
        self.last = sight;
    }

    /// Returns how long the driver was silent in healthy time.
    pub(super) fn healthy(&self) -> Duration {
        self.healthy
    }

    /// Returns true if the driver counts as lost.
    pub(super) fn is_over(&self, times: RunShared) -> bool {
        self.healthy >= Duration::from_millis(times.lost_after) && self.last.own_beats - self.since >= OWN_BEATS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: RunShared = RunShared::new(1000, 4000);

    fn oid(n: u8) -> Oid {
        format!("{n:02x}").repeat(20).parse().expect("it is an object name")
    }

    /// Looks every second, with the beats and own beats at each second; returns whether the driver
    /// is lost in the end.
    fn is_lost(start: Instant, beats: &[u8], own: &[u64], pause: u64) -> bool {
        let sight = |at: usize| Sight {
            read: start + Duration::from_secs(at as u64 * pause),
            beat: Some(oid(beats[at])),
            entry: None,
            own_beats: own[at],
        };
        let mut silence = Silence::new(sight(0));
        let (longest, heartbeat) = (Duration::from_secs(2), Duration::from_secs(1));
        (1..beats.len()).for_each(|at| silence.look(sight(at), longest, heartbeat));
        silence.is_over(TIMES)
    }

    #[test]
    fn only_silence_in_healthy_time_counts() {
        let start = Instant::now();
        assert!(is_lost(start, &[1; 5], &[0, 1, 2, 3, 4], 1));
        assert!(!is_lost(start, &[1; 4], &[0, 1, 2, 3], 1), "three seconds are too short");
        assert!(!is_lost(start, &[1, 1, 1, 2, 2], &[0, 1, 2, 3, 4], 1), "it beat meanwhile");
        assert!(!is_lost(start, &[1; 9], &[0; 9], 1), "own beats were refused");
        assert!(!is_lost(start, &[1; 3], &[0, 1, 2], 3600), "the observer slept");
        assert!(!is_lost(start, &[1; 20], &[[0; 19].as_slice(), &[1]].concat(), 1), "the remote was read-only");
    }
}
