//! Attempts that were taken from the drivers that held them.

use std::collections::HashMap;
use std::fmt;

use super::driver::{Because, DriverId};
use super::entry::{Again, Entry, Event};
use super::name::ItemId;

/// An attempt that was taken from its driver, as its entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The number of the entry.
    pub entry: u64,
    /// The item.
    pub item: ItemId,
    /// The attempt.
    pub attempt: u32,
    /// The driver that held it.
    pub driver: DriverId,
    /// The name of that driver's host, by the dispatch.
    pub host: Option<String>,
    /// The driver that took it.
    pub taker: Option<DriverId>,
    /// Why.
    pub because: Because,
}

impl Takeover {
    /// Returns the take-overs in the entries of a run, in order.
    ///
    /// Entries that name no driver or no reason are illegal, and are left out.
    pub fn all<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<Self> {
        let (mut hosts, mut all) = (HashMap::new(), Vec::new());
        for entry in entries {
            match &entry.event {
                Event::ItemFired(e) => drop(hosts.insert(&e.item, e.host())),
                Event::ItemRequeued(e) if e.reason == Again::Lost => {
                    let (Some(driver), Some(because)) = (e.driver.clone(), e.because) else { continue };
                    let host = hosts.get(&e.item).copied().flatten().map(str::to_owned);
                    let (item, taker) = (e.item.clone(), e.taker.clone());
                    all.push(Self { entry: entry.seq, item, attempt: e.attempt, driver, host, taker, because });
                }
                _ => {}
            }
        }
        all
    }
}

/// In words: `attempt 1 of X was taken from d1d1d1d1 (node7) by d2d2d2d2: silent`.
impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} of {} was taken from {}", self.attempt, self.item, self.driver.short())?;
        if let Some(host) = &self.host {
            write!(f, " ({host})")?;
        }
        if let Some(taker) = &self.taker {
            write!(f, " by {}", taker.short())?;
        }
        write!(f, ": {}", self.because.word())
    }
}
