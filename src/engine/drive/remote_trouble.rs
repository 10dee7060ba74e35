//! Waits while the remote of a shared run cannot be used.

use std::time::{Duration, Instant};

use crate::engine::event::Progress;
use crate::engine::shortage::Shortage;
use crate::git::passing;
use crate::model::causes::in_words;
use crate::run::operate::{self, OpenRun, coordinate};
use tokio::sync::watch;

use super::shared::Colleagues;
use super::{Driver, Error};

/// The longest pause before the remote is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The shortest pause after the remote refused everything.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// How often to try to record the last results when the driver was told to end.
const LAST_TRIES: u32 = 3;

/// How often the remote refuses results before it is asked to take their failures instead.
const REFUSALS: u32 = 4;

/// A remote that cannot be used now.
pub(super) struct Trouble {
    since: Instant,
    tries: u32,
    tries_at_end: u32,
    /// The number of accepted beats when it began.
    beats: u64,
    /// True if the remote's head cannot be followed.
    pub(super) is_poisoned: bool,
}

impl Colleagues {
    /// Returns the trouble with the remote. It begins now if it was not known.
    fn trouble_with(&mut self, is_poisoned: bool) -> &mut Trouble {
        let beats = self.beats.accepted();
        // Another kind of trouble may have begun long before.
        self.trouble.take_if(|known| is_poisoned && !known.is_poisoned);
        self.trouble.get_or_insert(Trouble { since: Instant::now(), tries: 0, tries_at_end: 0, beats, is_poisoned })
    }
}

impl Driver<'_> {
    /// Waits while the remote cannot be used; attempts go on meanwhile. Returns the error if
    /// waiting is pointless.
    pub(super) async fn hold_on(&mut self, error: Error, interrupt: &mut watch::Receiver<bool>) -> Result<(), Error> {
        let is_of_remote = is_of_remote(&error);
        if let Some(shortage) = Shortage::from_error(&error).filter(|_| !is_of_remote) {
            return self.wait_for_machine(shortage, error, interrupt).await;
        }
        let Some(shared) = self.shared.as_mut().filter(|_| is_of_remote) else { return Err(error) };
        if is_raced(&error) && shared.is_real_race(self.run.generation()) {
            // Claims are decided again, and go with the results in one push.
            self.look_again();
            return Ok(());
        }
        let is_poisoned = matches!(run_error(&error), Some(operate::Error::Poisoned(_)));
        let heartbeat = shared.heartbeat();
        let (beats, lost_after) = (shared.beats.accepted(), Duration::from_millis(shared.times.lost_after));
        let trouble = shared.trouble_with(is_poisoned);
        trouble.tries += 1;
        if trouble.tries == 1 {
            (self.tell)(Progress::Note(in_trouble(&error)));
        }
        let is_over = trouble.since.elapsed() > lost_after;
        if *interrupt.borrow() {
            trouble.tries_at_end += 1;
            if trouble.tries_at_end > LAST_TRIES {
                return Err(error);
            }
        } else if is_poisoned && is_over {
            return Err(error);
        }
        let is_refused = matches!(run_error(&error), Some(operate::Error::PushRefused { .. }));
        let tries = trouble.tries;
        // A remote that takes no beats takes nothing.
        let is_choosy = tries >= REFUSALS && beats >= trouble.beats + u64::from(REFUSALS);
        if let (Some(operate::Error::PushRefused { why, .. }), true) = (run_error(&error), is_choosy)
            && self.fail_results(why)?
        {
            return Ok(());
        }
        // After an outage work goes on within two heartbeats.
        let longest = match is_refused {
            true if tries > 3 => AFTER_REFUSAL,
            true => LONGEST_PAUSE,
            false => heartbeat.min(LONGEST_PAUSE),
        };
        let pause = (Duration::from_millis(250) * (1 << tries.min(7))).min(longest);
        self.look_again();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = interrupt.changed() => {}
        }
        Ok(())
    }

    /// Records failures instead of results that the remote refuses. Keeps the results and returns
    /// false if the remote refuses the failures, too.
    fn fail_results(&mut self, why: &str) -> Result<bool, Error> {
        let results = self.run.fail_refused(why)?;
        match self.record(&[]) {
            Ok(()) => Ok(true),
            Err(error) if is_of_remote(&error) => {
                self.run.stage_again(&results)?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns what an operator has to know about a remote that cannot be used.
fn in_trouble(error: &Error) -> String {
    let note = format!("{}; attempts go on, and their results are kept", in_words(error));
    match run_error(error).and_then(operate::Error::hint) {
        Some(hint) => format!("{note}; {hint}"),
        None => note,
    }
}

/// Reads what other writers appended, and tries again while a remote is busy.
pub(super) fn refresh_patiently(run: &mut OpenRun) -> Result<(), Error> {
    passing::insist(|| run.refresh(), operate::Error::is_of_remote)?;
    Ok(())
}

/// Returns true if another driver was first, so that claims were not accepted.
pub(super) fn is_raced(error: &Error) -> bool {
    run_error(error).is_some_and(operate::Error::is_raced)
}

/// Returns true if the remote could not be used now, and may be later.
pub(super) fn is_of_remote(error: &Error) -> bool {
    run_error(error).is_some_and(operate::Error::is_of_remote)
}

fn run_error(error: &Error) -> Option<&operate::Error> {
    match error {
        Error::Run(error) | Error::Coordinate(coordinate::Error::Run(error)) => Some(error),
        _ => None,
    }
}
