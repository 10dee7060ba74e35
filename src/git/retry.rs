//! Retries an update of a ref after another process changed the ref first.
//!
//! A swap names the old value, so exactly one of several concurrent writers succeeds. The others
//! retry after a random pause that grows with each lost turn.

use std::hash::{BuildHasher as _, RandomState};
use std::thread::sleep;
use std::time::Duration;

/// The most consecutive lost turns. Another process appended in each, so only a defect reaches
/// this.
const MOST: u32 = 1000;

/// The upper bound of the pause after the first lost turn.
const SHORTEST: Duration = Duration::from_millis(2);

/// The upper bound of every pause.
const LONGEST: Duration = Duration::from_millis(100);

/// An error that can mean that another process changed the ref first and nothing else happened.
pub trait Lost {
    /// Returns true if it means that.
    fn is_lost(&self) -> bool;
}

/// One of several concurrent writers of a ref.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    lost: u32,
}

impl Retry {
    /// Counts a lost turn and pauses. Returns true if another turn is left.
    #[must_use = "where there is no other turn, the race is lost"]
    pub fn again(&mut self) -> bool {
        self.lost += 1;
        if self.lost > MOST {
            return false;
        }
        let longest = SHORTEST.saturating_mul(1 << self.lost.min(16)).min(LONGEST);
        // The keys of a hash map are the randomness at hand.
        let part = u32::try_from(RandomState::new().hash_one(self.lost) % 1000).unwrap_or_default();
        sleep(longest * part / 1000);
        true
    }
}

/// Calls `attempt` until it succeeds or fails for another reason.
///
/// `attempt` must read its state again in each call.
pub fn run<T, E: Lost>(attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    run_while(E::is_lost, attempt)
}

/// Calls `attempt` until it succeeds or fails with an error that `is_lost` rejects.
pub(crate) fn run_while<T, E>(is_lost: fn(&E) -> bool, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut race = Retry::default();
    loop {
        match attempt() {
            Err(error) if is_lost(&error) && race.again() => {}
            other => return other,
        }
    }
}
