//! The latest output line of each running attempt, for display. Not recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::model::ansi;
use crate::model::name::ItemId;
use crate::model::printable;

/// The most bytes of a line to keep.
const LONGEST: usize = 400;

/// The most bytes of a line to read, control sequences included.
const RAW: usize = 4_000;

/// Receives the output of attempts, in whole lines and without secrets.
pub type Echo = Box<dyn Fn(&[u8]) + Send + Sync>;

/// The running attempts of a run.
#[derive(Default)]
pub struct Lives {
    running: Mutex<BTreeMap<ItemId, Arc<Live>>>,
    echo: OnceLock<Arc<Echo>>,
}

/// The latest line of one attempt, with its time.
pub struct Live {
    latest: Mutex<Said>,
    echo: Option<Arc<Echo>>,
}

#[derive(Debug)]
struct Said {
    last: String,
    at: Instant,
}

impl Lives {
    /// Sends the output of attempts that begin from now on to `echo` as well. Only the first call
    /// counts.
    pub fn echo_to(&self, echo: Echo) {
        self.echo.get_or_init(|| Arc::new(echo));
    }

    /// Registers an attempt of an item and replaces an earlier one.
    pub fn begin(&self, item: &ItemId) -> Arc<Live> {
        let latest = Mutex::new(Said { last: String::new(), at: Instant::now() });
        let live = Arc::new(Live { latest, echo: self.echo.get().cloned() });
        locked(&self.running).insert(item.clone(), Arc::clone(&live));
        live
    }

    /// Removes an item.
    pub fn end(&self, item: &ItemId) {
        locked(&self.running).remove(item);
    }

    /// Returns the running attempt of an item.
    pub fn find(&self, item: &ItemId) -> Option<Arc<Live>> {
        locked(&self.running).get(item).cloned()
    }

    /// Returns how long each item has been silent.
    pub fn silent(&self) -> Vec<(ItemId, Duration)> {
        locked(&self.running).iter().map(|(item, live)| (item.clone(), live.silent())).collect()
    }
}

impl Live {
    /// Records activity that may not be shown yet.
    pub fn stir(&self) {
        locked(&self.latest).at = Instant::now();
    }

    /// Records output without secrets.
    pub fn say(&self, bytes: &[u8]) {
        if let Some(echo) = &self.echo {
            echo(bytes);
        }
        // A progress bar overwrites its line after each carriage return.
        let lines = bytes.rsplit(|byte| matches!(byte, b'\n' | b'\r'));
        let lines_shown = lines.map(|line| ansi::without(&String::from_utf8_lossy(&line[..line.len().min(RAW)])));
        let Some(line) = lines_shown.map(|line| line.trim().to_owned()).find(|line| !line.is_empty()) else { return };
        locked(&self.latest).last = printable::beginning(&line, LONGEST);
    }

    /// Returns the latest line; empty if there is none.
    pub fn last(&self) -> String {
        locked(&self.latest).last.clone()
    }

    /// Returns how long it has been silent.
    pub fn silent(&self) -> Duration {
        locked(&self.latest).at.elapsed()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_something_in_it_is_shown_in_bounds() {
        let lives = Lives::default();
        let item = ItemId::parse("a").expect("it is a name");
        let live = lives.begin(&item);
        assert_eq!(live.last(), "");
        live.say(b"one\n  two \n\n \n");
        assert_eq!(live.last(), "two");
        live.say(b"\n");
        assert_eq!(live.last(), "two");
        live.say(b"10%\r20%\r");
        assert_eq!(live.last(), "20%");
        live.say(b"\x1b[2K\x1b[32m30%\x1b[0m\r\x1b[?25h\n");
        assert_eq!(live.last(), "30%");
        live.say("ä".repeat(1_000).as_bytes());
        assert!(live.last().len() <= LONGEST + 3);
        assert!(lives.silent()[0].1 < Duration::from_secs(60));
        lives.end(&item);
        assert!(lives.find(&item).is_none() && lives.silent().is_empty());
    }
}
