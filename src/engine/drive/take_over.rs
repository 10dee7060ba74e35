//! Watches the other drivers of a shared run, and takes over the attempts of those that are lost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::engine::beat::beat_ref;
use crate::engine::end_entries::Batch;
use crate::engine::event::Progress;
use crate::engine::silence::{Sight, Silence};
use crate::git::tip::Move;
use crate::ledger::beat;
use crate::model::beat::Beat;
use crate::model::digest::Oid;
use crate::model::driver::{Because, DriverId};
use crate::model::entry::{Again, Event, ItemEnded};
use crate::model::item_index::ItemIndex;
use crate::model::state::Phase;
use crate::run::operate::NewEntry;
use crate::run::operate::steer::requeued;

use super::{Driver, Error};

impl Driver<'_> {
    /// Takes over the attempts that earlier drivers of this repository left, whose lock is ours.
    pub(super) fn take_over_predecessors(&mut self, predecessors: &[DriverId]) -> Result<(), Error> {
        if predecessors.is_empty() {
            return Ok(());
        }
        let entries: Vec<NewEntry> =
            predecessors.iter().flat_map(|victim| self.losses(victim, Because::Lock)).collect();
        self.record(&entries)?;
        // Whether others are free decides what this driver claims first.
        self.run.judge_beats();
        let (Some(shared), Some(via)) = (&mut self.shared, self.run.via()) else { return Ok(()) };
        shared.recovered = (!entries.is_empty()).then(Instant::now).or(shared.recovered);
        let left = predecessors.iter().filter_map(|victim| {
            Some(Move { name: beat_ref(self.run.id(), victim), old: Some(via.value(victim)?), new: None })
        });
        // A beat that stays is removed by `clean --remote`.
        shared.beats.remove(left.collect());
        Ok(())
    }

    /// Returns true as long as this driver, the one before which died with attempts, leaves work to
    /// drivers with free slots: it may die as well, and again.
    pub(super) fn holds_off(&self) -> bool {
        let recovered = self.shared.as_ref().and_then(|shared| shared.recovered);
        recovered.is_some_and(|since| since.elapsed() < self.poll() * 2) && self.idle_elsewhere().0 > 0
    }

    /// Watches the other drivers, and takes over the attempts of those that are lost.
    pub(super) fn observe(&mut self) -> Result<(), Error> {
        let longest = self.poll() * 2;
        self.tell_beats();
        let mut holders: BTreeMap<DriverId, bool> = BTreeMap::new();
        for at in self.run.state.items.indices() {
            if let Some(holder) = &self.run.state.items[at].holder {
                let key = self.run.state.keys.dispatcher(&self.run.state.graph.item(at).id);
                let is_dismissed = key.is_some_and(|key| !self.run.state.keys.knows(key));
                *holders.entry(holder.driver.clone()).or_default() |= is_dismissed;
            }
        }
        let (Some(shared), Some(via)) = (&mut self.shared, self.run.via()) else { return Ok(()) };
        holders.remove(&shared.identity.id);
        shared.silences.retain(|driver, _| holders.contains_key(driver));
        let Some(read) = via.last_read() else { return Ok(()) };
        let (own_beats, heartbeat, times) = (shared.beats.accepted(), shared.heartbeat(), shared.times);
        let mut due = Vec::new();
        for (driver, is_dismissed) in holders {
            let value = via.value(&driver);
            let sight = Sight { read, beat: via.beat(&driver), entry: via.heard(&driver), own_beats };
            let silence = shared.silences.entry(driver.clone()).or_insert_with(|| Silence::new(sight));
            silence.look(sight, longest, heartbeat);
            if is_dismissed {
                due.push((driver.clone(), value, Because::Dismissed, Duration::ZERO));
            }
            if silence.is_over(times) {
                due.push((driver, value, Because::Silent, silence.healthy()));
            }
        }
        for (driver, value, because, silent) in due {
            self.take_over(&driver, value, because, silent)?;
        }
        Ok(())
    }

    /// Takes over the attempts of a driver, and puts a fence on its ref in the same push. If it
    /// beat meanwhile, the ref has another value, and nothing happens.
    fn take_over(
        &mut self,
        victim: &DriverId,
        value: Option<Oid>,
        because: Because,
        silent: Duration,
    ) -> Result<(), Error> {
        // Staged entries were decided before, so they go first.
        self.record(&[])?;
        let entries = self.losses(victim, because);
        let Some(shared) = self.shared.as_ref().filter(|_| !entries.is_empty()) else { return Ok(()) };
        let (run, first, writer) = (self.run.id().clone(), self.run.first(), self.run.writer().clone());
        let fence = Beat {
            taker: Some(shared.identity.id.clone()),
            ..Beat::new(run.clone(), first, victim.clone(), writer.clock.now())
        };
        let (oid, _kept) = beat::write(&writer, value, &fence).map_err(Error::Fence)?;
        let beat_move = Move { name: beat_ref(&run, victim), old: value, new: Some(oid) };
        self.run.stage(&entries)?;
        let published = self.run.publish_with(&[beat_move])?;
        if let Some(links) = published {
            if let Some(sharing) = &mut self.shared {
                sharing.silences.remove(victim);
            }
            let words =
                if because == Because::Silent { format!(", silent for {} s", silent.as_secs()) } else { String::new() };
            (self.tell)(Progress::Note(format!("took over the attempts of driver {}{words}", victim.short())));
            links.iter().for_each(|link| (self.tell)(Progress::Recorded(link, &self.run.state)));
        }
        self.force_catch_up()
    }

    /// Says that an attempt of this driver was taken from it, unless a person cancelled it.
    pub(super) fn tell_taken(&mut self, at: ItemIndex, attempt: u32) {
        let item = &self.run.state.items[at];
        if self.shared.is_none() || item.phase == Phase::Cancelled {
            return;
        }
        let by = item.holder.as_ref().map(|holder| format!("; driver {} runs it now", holder.driver.short()));
        let note = format!(
            "{}: attempt {attempt} was taken from this driver, and its work is saved{}",
            self.run.state.graph.item(at).id,
            by.unwrap_or_default()
        );
        (self.tell)(Progress::Note(note));
    }

    /// Returns the entries that take the attempts of a driver from it.
    fn losses(&self, victim: &DriverId, because: Because) -> Vec<NewEntry> {
        let Some(shared) = &self.shared else { return Vec::new() };
        let mut batch = Batch::default();
        let state = &self.run.state;
        for at in state.items.indices() {
            let Some(holder) = state.items[at].holder.as_ref().filter(|holder| holder.driver == *victim) else {
                continue;
            };
            let key = state.keys.dispatcher(&state.graph.item(at).id);
            // Another key may have dispatched in the name of a driver whose key was not dismissed.
            if because == Because::Dismissed && key.is_none_or(|key| state.keys.knows(key)) {
                continue;
            }
            let detail = format!("its driver {} was lost", victim.short());
            batch.entries.push(NewEntry::plain(Event::ItemRequeued(ItemEnded {
                detail: Some(detail.clone()),
                driver: Some(holder.driver.clone()),
                taker: Some(shared.identity.id.clone()),
                because: Some(because),
                ..requeued(state, at, Again::Lost)
            })));
            let crashes = state.items[at].crashes;
            if crashes >= self.machine.config.max_crashes {
                batch.failed(state, at, 0, format!("{detail}, as {crashes} before it"));
            }
        }
        batch.entries
    }
}
