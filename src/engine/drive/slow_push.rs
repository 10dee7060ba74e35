//! Claims nothing while a push takes longer than the times of a shared run allow.
//!
//! Claims that wait too long for the remote's answer may belong to another driver by then, so they
//! could never start, and no other driver could claim them.

use std::time::{Duration, Instant};

use crate::engine::beat::Beats;
use crate::engine::event::Progress;
use crate::model::driver::{MAX_HEARTBEAT, RunShared};
use crate::run::operate::via::Via;

use super::shared::Colleagues;
use super::{Driver, Error};

/// The number of pushes that a heartbeat must allow for.
const PUSHES: u32 = 3;

/// How many times `lostAfter` a driver that is alone waits for faster pushes.
const PATIENCE: u32 = 5;

/// The longest time to wait for a push that is measured.
const LONGEST: Duration = Duration::from_secs(60);

/// Returns the times of a run to be shared, longer if pushes are too slow for them.
///
/// The fastest of three pushes counts, because a busy machine makes pushes slow for a while only.
pub(super) fn allowing_for(beats: &Beats, times: RunShared, tell: &mut dyn FnMut(Progress<'_>)) -> RunShared {
    let first = beats.push_time();
    let more = (1..PUSHES).map_while(|_| beats.beat_now(LONGEST).then(|| beats.push_time()));
    let push = more.fold(first, Duration::min);
    let least = u64::try_from((push * PUSHES).as_millis()).unwrap_or(u64::MAX).div_ceil(100) * 100;
    let heartbeat = least.min(MAX_HEARTBEAT);
    if times.heartbeat >= heartbeat {
        return times;
    }
    let raised = RunShared::new(heartbeat, times.lost_after.max(4 * heartbeat));
    tell(Progress::Note(format!(
        "a push takes {} here: the heartbeat of this run is {}, not {}",
        in_seconds(push),
        in_seconds(Duration::from_millis(heartbeat)),
        in_seconds(Duration::from_millis(times.heartbeat))
    )));
    raised
}

impl Driver<'_> {
    /// Returns true if this driver claims nothing, because its pushes are too slow.
    pub(super) fn is_slow(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.slow.is_some())
    }

    /// Decides, after claims could not start in time, whether pushes are too slow for the run.
    pub(super) fn judge_pushes(&mut self) {
        let Some(shared) = &mut self.shared else { return };
        let (took, heartbeat) = (shared.beats.push_time(), shared.heartbeat());
        if took <= heartbeat || shared.slow.is_some() {
            return;
        }
        shared.slow = Some(Instant::now());
        (self.tell)(Progress::Note(too_slow(took, heartbeat)));
    }

    /// Hands back what waits for a slot while pushes are too slow. Claims again once they are not.
    ///
    /// Ends the driver if nothing runs here and no other driver lives: the run would wait for ever.
    pub(super) fn yield_if_slow(&mut self) -> Result<(), Error> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let Some(since) = shared.slow else { return Ok(()) };
        let (took, heartbeat) = (shared.beats.push_time(), shared.heartbeat());
        if took <= heartbeat {
            shared.slow = None;
            let note = format!("a push takes {} here now: claims go on", in_seconds(took));
            (self.tell)(Progress::Note(note));
            return Ok(());
        }
        let back = self.hand_back_all("pushes are too slow on its machine");
        if !back.is_empty() {
            self.record(&back)?;
        }
        let is_alone = self.run.via().is_none_or(|via: &Via| via.drivers() <= 1);
        let lost_after = self.shared.as_ref().map_or(Duration::ZERO, Colleagues::lost_after);
        let is_over = is_alone && self.running.is_empty() && since.elapsed() > lost_after * PATIENCE;
        if is_over && !self.run.state.is_settled() {
            return Err(Error::Slow(too_slow(took, heartbeat)));
        }
        Ok(())
    }
}

fn too_slow(took: Duration, heartbeat: Duration) -> String {
    format!(
        "a push takes {} here, which is more than the heartbeat of this run allows ({})",
        in_seconds(took),
        in_seconds(heartbeat)
    )
}

/// Returns a time in seconds, with two digits at most.
pub(super) fn in_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let digits = if seconds >= 9.95 {
        0
    } else if seconds >= 0.995 {
        1
    } else {
        2
    };
    let number = format!("{seconds:.digits$}");
    let number = if digits == 0 { &number } else { number.trim_end_matches('0').trim_end_matches('.') };
    format!("{} s", if number == "0" { "0.01" } else { number })
}
