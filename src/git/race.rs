//! What is done when somebody else moved a ref first: it is looked at anew and tried again, after a pause.
//!
//! A swap names the old value, so of many who want to move one ref at the same time exactly one does. The others have lost nothing but a
//! turn. The pause is another one for each of them and grows with every turn that is lost, so that they do not meet again.

use std::hash::{BuildHasher as _, RandomState};
use std::thread::sleep;
use std::time::Duration;

/// How many turns in a row may be lost. Somebody else appended in each of them, so only what is broken comes that far.
const MOST: u32 = 1000;

/// The pause after the first turn that is lost is shorter than this.
const SHORTEST: Duration = Duration::from_millis(2);

/// No pause is longer than this.
const LONGEST: Duration = Duration::from_millis(100);

/// An error that may say that somebody else moved a ref first, and that nothing else has happened.
pub trait Lost {
    /// Returns whether it says that.
    fn is_lost(&self) -> bool;
}

/// One writer among those who want to move a ref.
#[derive(Clone, Debug, Default)]
pub struct Race {
    lost: u32,
}

impl Race {
    /// Takes note of a turn that was lost and waits for a moment; returns whether there is another one.
    #[must_use = "where there is no other turn, the race is lost"]
    pub fn again(&mut self) -> bool {
        self.lost += 1;
        if self.lost > MOST {
            return false;
        }
        let longest = SHORTEST.saturating_mul(1 << self.lost.min(16)).min(LONGEST);
        // The keys of a hash map are the randomness that is always at hand.
        let part = u32::try_from(RandomState::new().hash_one(self.lost) % 1000).unwrap_or_default();
        sleep(longest * part / 1000);
        true
    }
}

/// Does what may lose races until it has won or lost for another reason.
///
/// Whatever `attempt` goes by it must look at each time it is called.
pub fn run<T, E: Lost>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut race = Race::default();
    loop {
        match attempt() {
            Err(error) if error.is_lost() && race.again() => {}
            other => return other,
        }
    }
}
