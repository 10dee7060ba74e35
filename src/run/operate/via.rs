//! The remote through which a shared run is driven, and what this process knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use crate::git::remote;
use crate::git::store::{KeepGuard, Store};
use crate::git::tip::{Move, Swap, Tip};
use crate::model::beat::Beat;
use crate::model::digest::Oid;
use crate::model::driver::{DriverId, GRACE};
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::RunId;

use super::beats::{Judge, Mark, ReadError, Reader};
use super::line::{Line, Wait, is_slower};
use super::pace::Pace;

/// The remote of a shared run.
pub struct Via {
    tip: Tip,
    run: RunId,
    /// The driver that this process is, or `None` for a command of a person.
    driver: Option<DriverId>,
    pace: Pace,
    line: Line,
    reader: Reader,
    /// The values of the drivers' refs, by the last read.
    values: BTreeMap<DriverId, Oid>,
    /// The highest beat of each driver that counted.
    latest: BTreeMap<DriverId, Latest>,
    /// When a higher beat of each living driver was last seen.
    moved: BTreeMap<DriverId, Instant>,
    /// Earlier drivers of this repository, whose beats do not count.
    ended: BTreeSet<DriverId>,
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
    pub(super) guard: KeepGuard,
}

impl Via {
    /// Uses a remote for a run.
    pub fn new(tip: Tip, run: &RunId, driver: Option<DriverId>, interval: Duration) -> Self {
        Self {
            tip,
            run: run.clone(),
            driver,
            pace: Pace::new(interval),
            line: Line::default(),
            reader: Reader::default(),
            values: BTreeMap::new(),
            latest: BTreeMap::new(),
            moved: BTreeMap::new(),
            ended: BTreeSet::new(),
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

    /// Returns the value of a driver's ref by the last read, which may be no beat.
    pub fn value(&self, driver: &DriverId) -> Option<Oid> {
        self.values.get(driver).copied()
    }

    /// Returns the highest beat of a driver that counted.
    pub fn beat(&self, driver: &DriverId) -> Option<Oid> {
        self.latest.get(driver).and_then(|latest| latest.beat)
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
        let began = Instant::now();
        let read = match self.reader.read(&self.tip, store, &self.run) {
            Err(ReadError::Remote(why)) => return self.judge_failure(why),
            read => read?,
        };
        let now = Instant::now();
        self.pace.read(now.duration_since(began));
        self.line.read(now);
        self.last_read = Some(now);
        self.values = read.values;
        Ok(RunRead { changed: read.head, is_gone: false, guard: read.guard })
    }

    /// Decides what a failed fetch means for the run: the remote does not have it, its head was
    /// refused, or the remote could not be used.
    fn judge_failure(&self, why: remote::Error) -> Result<RunRead, ReadError> {
        let name = format::run_ref(&self.run);
        let Ok(listed) = self.tip.list(&[&name]) else { return Err(why.into()) };
        match listed.get(&name) {
            // A fetch fails if a ref that it names is not there.
            None => Ok(RunRead { changed: None, is_gone: true, guard: KeepGuard::default() }),
            Some(head) if why.refuses_objects() => Err(ReadError::Head { head: *head, why }),
            Some(_) => Err(why.into()),
        }
    }

    /// Judges the values that the last read found on the refs of drivers. Only a beat that counts
    /// and is higher than those before it is a sign of life.
    pub(super) fn judge_beats(&mut self, judge: &Judge) {
        let now = Instant::now();
        for (driver, value) in self.values.iter().filter(|(driver, _)| !self.ended.contains(*driver)) {
            let latest = self.latest.entry(driver.clone()).or_default();
            if latest.judged.replace(*value) == Some(*value) {
                continue;
            }
            let Some(sign) = judge.sign(driver, *value) else { continue };
            let mark = sign.mark();
            if mark > latest.mark {
                (latest.mark, latest.beat) = (mark, Some(*value));
                // A driver whose machine lacks something may be free, and still unable to help.
                let free = if sign.beat.declines.is_empty() { sign.beat.free } else { 0 };
                latest.slots = free.saturating_add(sign.beat.holds.len() as u64);
                latest.push = Duration::from_millis(sign.beat.push.unwrap_or_default()).min(self.lost_after);
                self.moved.insert(driver.clone(), now);
                if Some(driver) != self.driver.as_ref() {
                    self.line.heard(driver, wait(&sign.beat, latest.push, now, self.lost_after));
                }
            }
        }
        let values = &self.values;
        self.latest.retain(|driver, latest| latest.mark.is_some() || values.contains_key(driver));
        let lost_after = self.lost_after;
        self.moved.retain(|driver, moved| values.contains_key(driver) && now.duration_since(*moved) < lost_after);
        self.line.retain(|driver| self.moved.contains_key(driver));
        self.line.choose(now, self.pace.call_time(), lost_after / 4);
    }

    /// Returns the number of living drivers.
    pub fn drivers(&self) -> usize {
        self.moved.len().max(1)
    }

    /// Sets the silence after which a driver does not count any more.
    pub fn set_lost_after(&mut self, lost_after: Duration) {
        self.lost_after = lost_after;
    }

    /// Ignores the beats of drivers that have ended.
    pub(super) fn forget(&mut self, ended: &[DriverId]) {
        self.ended.extend(ended.iter().cloned());
        self.moved.retain(|driver, _| !ended.contains(driver));
    }

    /// Records the driver that an entry names, if any.
    pub(super) fn note_entry(&mut self, driver: Option<&DriverId>) {
        let Some(driver) = driver else { return };
        self.last_driver = Some(driver.clone());
        if Some(driver) != self.driver.as_ref() {
            self.heard.insert(driver.clone(), Instant::now());
            self.pace.saw_others(Instant::now());
            self.line.passed(driver);
        }
    }

    /// Records that an attempt was taken from another driver.
    pub(super) fn note_cut(&mut self, at: ItemIndex) {
        let may_run = self.may_run();
        self.cut.retain(|(_, since)| since.elapsed() < may_run);
        self.cut.push((at, Instant::now()));
    }

    /// Returns the items whose workers may still run on other machines, because they were taken
    /// from their drivers a short time ago.
    pub fn cut(&self) -> impl Iterator<Item = ItemIndex> {
        self.cut.iter().filter(|(_, since)| since.elapsed() < self.may_run()).map(|(at, _)| *at)
    }

    /// Returns how long a worker may run after its attempt was taken from its driver.
    ///
    /// After `lostAfter`, the driver has read it, or the supervisor has ended the worker. A driver
    /// that read it at the last moment asks the worker to end, and then kills it, which may take as
    /// long again on a busy machine.
    fn may_run(&self) -> Duration {
        self.lost_after + 2 * GRACE
    }

    /// Waits until the next push is due.
    pub(super) fn wait_for_gap(&self) {
        thread::sleep(self.pace.gap(Instant::now(), self.drivers()));
    }

    /// Returns how long to wait before the next push.
    pub fn due(&self) -> Duration {
        let now = Instant::now();
        self.pace.due(now, self.drivers(), self.line.is_first()).max(self.line.due(now))
    }

    /// Sets since when this driver has something to push, and whether its beats say so.
    pub fn set_waiting(&mut self, since: Option<Instant>, is_announced: bool) {
        self.line.set_own(since, is_announced);
    }

    /// Returns true if other drivers were faster since this driver's last push.
    pub fn was_too_late(&self) -> bool {
        self.pace.was_too_late()
    }

    /// Returns the living drivers besides this one, each with its number of slots and the time of
    /// a push there, by its last beat.
    pub fn others(&self) -> impl Iterator<Item = (&DriverId, u64, Duration)> {
        let living = self.moved.keys().filter(|driver| Some(*driver) != self.driver.as_ref());
        living.filter_map(|driver| self.latest.get(driver).map(|latest| (driver, latest.slots, latest.push)))
    }

    /// Returns true if another driver is so much faster that it would win every race.
    pub fn has_faster(&self) -> bool {
        let own = self.pace.call_time();
        self.others().any(|(_, _, push)| is_slower(own, push))
    }

    /// Returns true if the last read is so old that a slower driver may have begun to wait since.
    fn may_have_missed(&self, now: Instant) -> bool {
        let slowest = self.others().map(|(_, _, push)| push).max();
        let read = self.last_read.map_or(Duration::MAX, |read| now.duration_since(read));
        slowest.is_some_and(|slowest| read > slowest.max(self.pace.push_time()))
    }

    /// Returns the mean time of a push.
    pub fn push_time(&self) -> Duration {
        self.pace.push_time()
    }

    /// Returns how long it takes until each driver had its turn, or zero if this one is alone.
    pub fn round(&self) -> Duration {
        let others = u32::try_from(self.drivers().saturating_sub(1)).unwrap_or(u32::MAX);
        self.pace.turn_time().saturating_mul(others)
    }

    /// Returns the time of a push or of a read, whichever is longer.
    pub fn call_time(&self) -> Duration {
        self.pace.call_time()
    }

    /// Returns true if the driver has to read before it may push.
    pub fn awaits_turn(&self) -> bool {
        let now = Instant::now();
        self.line.leaves_room(now)
            || self.pace.awaits_turn(now, self.drivers())
            || (!self.pace.is_turn() && self.may_have_missed(now))
    }

    /// Makes [`Via::due`] wait for this driver's turn.
    pub(super) fn await_turn(&mut self) {
        let wait = if self.line.is_first() { Duration::ZERO } else { self.wait() };
        self.pace.await_turn(Instant::now(), wait);
    }

    /// Returns true if the others leave room for this driver.
    pub(super) fn is_first(&self) -> bool {
        self.line.is_first()
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
        let now = Instant::now();
        self.pace.pushed(now, started.elapsed(), matches!(answer, Swap::Lost | Swap::Locked(_)));
        if answer == Swap::Won {
            self.line.pushed(now);
        }
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

/// The beats of one driver that were judged.
#[derive(Default)]
struct Latest {
    /// The value that was judged last.
    judged: Option<Oid>,
    /// The highest beat that counted.
    beat: Option<Oid>,
    mark: Option<Mark>,
    /// The number of items that the driver can run at once.
    slots: u64,
    /// The time of a push there.
    push: Duration,
}

/// Returns what a driver waits for by a beat that was read now. Only the time between two moments
/// of its own clock counts.
fn wait(beat: &Beat, push: Duration, now: Instant, longest: Duration) -> Option<Wait> {
    let waits = beat.waits?;
    let waited = u64::try_from(beat.at.millis().saturating_sub(waits.since.millis())).unwrap_or_default();
    let since = now.checked_sub(Duration::from_millis(waited).min(longest)).unwrap_or(now);
    Some(Wait { since, push })
}
