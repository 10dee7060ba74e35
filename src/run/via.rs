//! The remote through which a shared run is driven, and what this process knows of it.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use crate::git::store::{KeepGuard, Store};
use crate::git::tip::{Copy, Move, Swap, Tip};
use crate::git::{refs, remote};
use crate::model::digest::Oid;
use crate::model::driver::DriverId;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::RunId;

use super::pace::Pace;

/// The remote of a shared run.
pub struct Via {
    tip: Tip,
    run: RunId,
    /// The driver that this process is, or `None` for a command of a person.
    driver: Option<DriverId>,
    pace: Pace,
    /// The latest beat of each driver, by the last read.
    beats: BTreeMap<DriverId, Oid>,
    /// When the beat of each living driver was last seen to move.
    moved: BTreeMap<DriverId, Instant>,
    /// The silence after which a driver does not count any more.
    lost_after: Duration,
    /// The driver of the latest entry that names one.
    last_driver: Option<DriverId>,
    /// Entries of the latest read by other drivers, by the driver that they name.
    heard: BTreeMap<DriverId, Instant>,
    /// The time of the latest successful read.
    last_read: Option<Instant>,
    /// Items whose attempts were taken from other drivers, with the time of the read. Their workers
    /// may still run.
    cut: Vec<(ItemIndex, Instant)>,
}

/// The run's ref on the remote, after a read.
pub(super) struct RunRead {
    /// The head, if our ref differs.
    pub(super) changed: Option<Oid>,
    /// Whether the remote has no such ref.
    pub(super) is_gone: bool,
    /// Keeps the fetched objects until a ref reaches them.
    pub(super) kept: KeepGuard,
}

impl Via {
    /// Uses a remote for a run.
    pub fn new(tip: Tip, run: &RunId, driver: Option<DriverId>, interval: Duration) -> Self {
        Self {
            tip,
            run: run.clone(),
            driver,
            pace: Pace::new(interval),
            beats: BTreeMap::new(),
            moved: BTreeMap::new(),
            lost_after: Duration::from_secs(60),
            last_driver: None,
            heard: BTreeMap::new(),
            last_read: None,
            cut: Vec::new(),
        }
    }

    /// Returns the remote.
    pub fn tip(&self) -> &Tip {
        &self.tip
    }

    /// Returns the driver that this process is.
    pub fn driver(&self) -> Option<&DriverId> {
        self.driver.as_ref()
    }

    /// Returns the latest beat of each driver, by the last read.
    pub fn beats(&self) -> &BTreeMap<DriverId, Oid> {
        &self.beats
    }

    /// Returns when an entry was last read that names a driver.
    pub fn heard(&self, driver: &DriverId) -> Option<Instant> {
        self.heard.get(driver).copied()
    }

    /// Returns when the remote was last read.
    pub fn last_read(&self) -> Option<Instant> {
        self.last_read
    }

    /// Fetches the chain and the beats from the remote, and moves our copies of the beats.
    pub(super) fn read(&mut self, store: &Store) -> Result<RunRead, ReadError> {
        let (run_ref, beats) = (format::run_ref(&self.run), format::driver_refs(&self.run));
        let copies = [run_ref.clone(), format!("{beats}*")];
        let copies = copies.map(|name| Copy { theirs: name.clone(), ours: name });
        let read = match self.tip.read(&copies) {
            // A fetch fails if a ref that it names is not there.
            Err(error) if self.tip.list(&[&run_ref]).is_ok_and(|listed| listed.is_empty()) => {
                drop(error);
                return Ok(RunRead { changed: None, is_gone: true, kept: KeepGuard::default() });
            }
            read => read?,
        };
        self.last_read = Some(Instant::now());
        for (name, value) in &read.changed {
            let Some(driver) = name.strip_prefix(&beats).and_then(DriverId::parse) else { continue };
            keep_beat(store, name, *value)?;
            if let Some(beat) = value {
                self.moved.insert(driver.clone(), Instant::now());
                self.beats.insert(driver, *beat);
                continue;
            }
            self.beats.remove(&driver);
            self.moved.remove(&driver);
        }
        let now = Instant::now();
        self.moved.retain(|_, moved| now.duration_since(*moved) < self.lost_after);
        // Copies of earlier processes of this clone count as read.
        for (name, beat) in refs::list(store, &beats)? {
            if let Some(driver) = name.strip_prefix(&beats).and_then(DriverId::parse) {
                self.beats.insert(driver, beat);
            }
        }
        let changed = read.changed.get(&run_ref).copied().flatten();
        Ok(RunRead { changed, is_gone: false, kept: read.kept })
    }

    /// Returns the number of living drivers.
    pub fn drivers(&self) -> usize {
        self.moved.len().max(1)
    }

    /// Sets the silence after which a driver does not count any more.
    pub fn set_lost_after(&mut self, lost_after: Duration) {
        self.lost_after = lost_after;
    }

    /// Records the driver that an entry names, if any.
    pub(super) fn note_entry(&mut self, driver: Option<&DriverId>) {
        let Some(driver) = driver else { return };
        self.last_driver = Some(driver.clone());
        if Some(driver) != self.driver.as_ref() {
            self.heard.insert(driver.clone(), Instant::now());
            self.pace.saw_others(Instant::now());
        }
    }

    /// Records that an attempt was taken from another driver.
    pub(super) fn note_cut(&mut self, at: ItemIndex) {
        self.cut.push((at, Instant::now()));
    }

    /// Returns the items whose workers may still run on other machines: those that were ended less
    /// than `lostAfter` ago. By then their drivers have read it, or their workers were ended.
    pub fn cut(&self) -> impl Iterator<Item = ItemIndex> {
        self.cut.iter().filter(|(_, since)| since.elapsed() < self.lost_after).map(|(at, _)| *at)
    }

    /// Waits until the next push is due.
    pub(super) fn wait_for_gap(&self) {
        thread::sleep(self.pace.gap(Instant::now(), self.drivers()));
    }

    /// Returns how long to wait before the next push.
    pub fn due(&self) -> Duration {
        self.pace.due(Instant::now(), self.drivers())
    }

    /// Returns the mean time of a push.
    pub fn push_time(&self) -> Duration {
        self.pace.push_time()
    }

    /// Returns true if the driver has to read before it may push.
    pub fn awaits_turn(&self) -> bool {
        self.pace.awaits_turn(Instant::now(), self.drivers())
    }

    /// Makes [`Via::due`] wait for this driver's turn.
    pub(super) fn await_turn(&mut self) {
        let wait = self.wait();
        self.pace.await_turn(Instant::now(), wait);
    }

    /// Records that nothing new was read at this driver's turn.
    pub(super) fn begin_turn(&mut self) {
        self.pace.begin_turn();
    }

    /// Moves the chain's ref on the remote, with other refs if `more` names any.
    pub(super) fn swap(&mut self, old: Option<Oid>, new: Oid, more: &[Move]) -> Result<Swap, remote::Error> {
        let mut moves = vec![Move { name: format::run_ref(&self.run), old, new: Some(new) }];
        moves.extend_from_slice(more);
        let started = Instant::now();
        let answer = self.tip.swap(&moves)?;
        self.pace.pushed(Instant::now(), started.elapsed(), answer == Swap::Lost);
        Ok(answer)
    }

    /// Returns how long to wait for this driver's turn.
    pub(super) fn wait(&self) -> Duration {
        let drivers = self.drivers();
        let (Some(own), Some(last)) = (&self.driver, &self.last_driver) else { return self.pace.push_time() / 2 };
        if !self.pace.is_contended(Instant::now(), drivers) {
            return Duration::ZERO;
        }
        self.pace.turn(self.moved.keys(), own, last)
    }
}

/// Moves our copy of a beat to the value that a remote shows.
pub(super) fn keep_beat(store: &Store, name: &str, value: Option<Oid>) -> Result<(), refs::Error> {
    match (value, refs::read_stored(store, name)?) {
        (Some(beat), _) => refs::set(store, name, beat),
        (None, Some(old)) => refs::delete(store, name, old),
        (None, None) => Ok(()),
    }
}

/// Failures to read the remote of a shared run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReadError {
    #[error(transparent)]
    Remote(#[from] remote::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
}
