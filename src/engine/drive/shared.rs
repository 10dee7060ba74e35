//! Drives a run together with other drivers, through a remote.
//!
//! The chain decides: a driver runs exactly the attempts that the chain says it holds. After each
//! read it stops what it runs and does not hold, and starts or ends what it holds and does not run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::clock::since_boot;
use crate::engine::attempt::Job;
use crate::engine::beat::{Beats, Pulse, beat_ref};
use crate::engine::event::Progress;
use crate::engine::identity::Identity;
use crate::engine::outcome::Batch;
use crate::engine::silence::{Sight, Silence};
use crate::engine::slots::HeldSlots;
use crate::git::refs;
use crate::git::tip::{Move, Tip};
use crate::ledger::beat;
use crate::model::beat::Beat;
use crate::model::causes::in_words;
use crate::model::digest::Digest;
use crate::model::driver::{Because, DriverId, RunShared};
use crate::model::entry::{Again, Event, ItemEnded};
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::state::{Holder, Phase};
use crate::process::agent::Lease;
use crate::run::steer::requeued;
use crate::run::{self, NewEntry, OpenRun, coordinate};

use super::{Driver, Error};

/// How often to read the remote, unless there are many drivers or short times.
const POLL: Duration = Duration::from_secs(2);

/// The number of drivers for which the time between two reads grows by a second.
const DRIVERS_PER_SECOND: u32 = 5;

/// The longest pause before the remote is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The shortest pause after the remote refused everything.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// How often the remote refuses results, and takes beats meanwhile, before the results fail.
const REFUSALS: u32 = 4;

/// How often to try to record the last results when the driver was told to end.
const LAST_TRIES: u32 = 3;

/// This driver among the drivers of a shared run.
pub(in crate::engine) struct Colleagues {
    identity: Identity,
    beats: Beats,
    times: RunShared,
    silences: BTreeMap<DriverId, Silence>,
    /// Jobs whose claims were pushed with an unknown outcome.
    unsure: BTreeMap<ItemIndex, Claimed>,
    /// The generation of the state that was compared with what runs.
    compared: Option<u64>,
    trouble: Option<Trouble>,
}

/// A claim with everything to start it.
pub(super) struct Claimed {
    pub(super) job: Job,
    pub(super) slots: HeldSlots,
    /// The digest of the dispatch manifest.
    pub(super) manifest: Digest,
}

/// A remote that cannot be used now.
struct Trouble {
    since: Instant,
    tries: u32,
    tries_at_end: u32,
    /// The number of accepted beats when it began.
    beats: u64,
}

impl Colleagues {
    /// Sends the first beat, and shares the run if it is not shared yet.
    ///
    /// Nothing is claimed before the remote accepted the beat.
    pub(in crate::engine) fn start(
        run: &mut OpenRun,
        identity: Identity,
        tip: Tip,
        new: RunShared,
    ) -> Result<Self, Error> {
        let times = run.state.shared.unwrap_or(new);
        let store = run.store();
        let folder = store.common_dir().join("handoff").join("via");
        std::fs::create_dir_all(&folder).map_err(Error::Aside)?;
        let pulse = Pulse {
            tip,
            writer: run.writer().clone(),
            run: run.id().clone(),
            first: run.first(),
            identity: identity.clone(),
            heartbeat: Duration::from_millis(times.heartbeat),
            alive: folder.join(format!("{}.alive", run.id().encoded())),
        };
        let beats = Beats::start(pulse).map_err(Error::Beat)?;
        if run.state.shared.is_none() {
            run.record(&[NewEntry::Plain(Event::RunShared(new))])?;
        }
        let times = run.state.shared.unwrap_or(times);
        let (silences, unsure) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { identity, beats, times, silences, unsure, compared: None, trouble: None })
    }

    /// Returns how often to read the remote.
    pub(super) fn poll(&self, drivers: usize) -> Duration {
        let many = Duration::from_secs(1) * u32::try_from(drivers).unwrap_or(u32::MAX) / DRIVERS_PER_SECOND;
        // Short times are for tests and fast networks.
        POLL.min(Duration::from_millis(self.times.lost_after / 4)).max(many)
    }

    fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.times.heartbeat)
    }

    /// Names this driver in a dispatch.
    pub(super) fn sign(&self, fired: &mut crate::model::entry::ItemFired) {
        fired.driver = Some(self.identity.id.clone());
        fired.host.clone_from(&self.identity.host);
        fired.job.clone_from(&self.identity.job);
    }

    /// Returns the sign of life without which an attempt with a lock ends, before another driver may
    /// take it over.
    pub(super) fn lease(&self) -> Lease {
        let limit = Duration::from_millis(self.times.lost_after / 4 * 3);
        Lease { file: self.beats.alive().to_owned(), limit }
    }

    pub(super) fn id(&self) -> &DriverId {
        &self.identity.id
    }

}

impl Driver<'_> {
    /// Returns true if an attempt is running and this driver holds it.
    pub(super) fn holds(&self, at: ItemIndex, attempt: u32) -> bool {
        let state = &self.run.state.items[at];
        let is_held = |holder: &Holder| self.shared.as_ref().is_some_and(|shared| holder.driver == *shared.id());
        let by_us = match &self.shared {
            None => true,
            Some(_) => state.holder.as_ref().is_some_and(is_held),
        };
        state.phase == Phase::Running && state.attempts == attempt && by_us
    }

    /// Returns true if the chain has this very claim of ours.
    fn has_claim(&self, at: ItemIndex, claimed: &Claimed) -> bool {
        let manifest = self.run.state.items[at].holder.as_ref().map(|holder| holder.manifest);
        self.holds(at, claimed.job.attempt) && manifest.is_none_or(|manifest| manifest == claimed.manifest)
    }

    /// Returns the most items of the run that may run at once, if `own` of them run here.
    pub(super) fn concurrency(&self, own: usize) -> usize {
        let Some(_) = &self.shared else { return self.limit().map_or(own, |most| own.min(most)) };
        let mine = self.running.iter().filter(|(at, running)| self.holds(**at, running.attempt)).count();
        let others = usize::try_from(self.run.state.running()).unwrap_or(usize::MAX).saturating_sub(mine);
        let all = own.saturating_add(others);
        self.limit().map_or(all, |most| all.min(most))
    }

    /// Returns the most items that the plan allows to run at once.
    fn limit(&self) -> Option<usize> {
        self.run.state.submitted.concurrency.and_then(|most| usize::try_from(most).ok())
    }

    /// Starts the claims that were accepted.
    ///
    /// A driver that was stopped meanwhile may have been robbed: it beats and reads first.
    pub(super) fn start_claimed(&mut self, claimed: BTreeMap<ItemIndex, Claimed>) -> Result<(), Error> {
        if let Some(shared) = &self.shared
            && shared.beats.age() > shared.heartbeat() * 2
            && !claimed.is_empty()
        {
            let beaten = shared.beats.beat_now(shared.heartbeat() * 2);
            if !beaten || self.run.refresh().is_err() {
                self.keep_unsure(claimed);
                return Ok(());
            }
            self.rebuild();
        }
        for (at, claimed) in claimed {
            if self.has_claim(at, &claimed) {
                self.start(at, claimed.job, claimed.slots);
            }
        }
        Ok(())
    }

    /// Keeps jobs whose claims may have been accepted.
    pub(super) fn keep_unsure(&mut self, claimed: BTreeMap<ItemIndex, Claimed>) {
        if let Some(shared) = &mut self.shared {
            shared.unsure.extend(claimed);
            shared.compared = None;
        }
    }

    /// Compares what runs here with what the chain says that this driver holds.
    pub(super) fn compare(&mut self) -> Result<(), Error> {
        let generation = self.run.generation();
        let Some(shared) = &mut self.shared else { return Ok(()) };
        if shared.compared.replace(generation) == Some(generation) {
            return Ok(());
        }
        let unsure = std::mem::take(&mut shared.unsure);
        let id = shared.id().clone();
        let (ours, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            unsure.into_iter().partition(|(at, claimed)| self.has_claim(*at, claimed));
        drop(gone);
        self.start_claimed(ours)?;
        let is_ours =
            |at: ItemIndex| self.run.state.items[at].holder.as_ref().is_some_and(|holder| holder.driver == id);
        let kept: BTreeSet<ItemIndex> = match &self.shared {
            Some(shared) => shared.unsure.keys().copied().collect(),
            None => BTreeSet::new(),
        };
        let ended: BTreeSet<ItemIndex> = self.ended.iter().map(|finished| finished.at).collect();
        let is_known = |at: &ItemIndex| self.running.contains_key(at) || kept.contains(at) || ended.contains(at);
        let lost: Vec<ItemIndex> = self.run.state.items.indices().filter(|at| is_ours(*at) && !is_known(at)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        lost.into_iter().for_each(|at| self.crash(&mut batch, at, "the driver had no job for it"));
        self.record(&batch.entries)
    }

    /// Takes over the attempts that an earlier driver of this repository left, whose lock is ours.
    pub(super) fn take_over_predecessor(&mut self, predecessor: Option<DriverId>) -> Result<(), Error> {
        let Some(victim) = predecessor else { return Ok(()) };
        let entries = self.losses(&victim, Because::Lock);
        self.record(&entries)
    }

    /// Watches the other drivers, and takes over the attempts of those that are lost.
    pub(super) fn observe(&mut self) -> Result<(), Error> {
        let Some((_, longest)) = self.shared.as_ref().map(|shared| (shared.id().clone(), self.poll() * 2)) else {
            return Ok(());
        };
        self.tell_beats();
        let mut held: BTreeMap<DriverId, bool> = BTreeMap::new();
        for at in self.run.state.items.indices() {
            if let Some(holder) = &self.run.state.items[at].holder {
                let key = self.run.state.keys.dispatcher(&self.run.state.graph.item(at).id);
                let is_dismissed = key.is_some_and(|key| !self.run.state.keys.knows(key));
                *held.entry(holder.driver.clone()).or_default() |= is_dismissed;
            }
        }
        let (Some(shared), Some(via)) = (&mut self.shared, self.run.via()) else { return Ok(()) };
        held.remove(&shared.identity.id);
        shared.silences.retain(|driver, _| held.contains_key(driver));
        let Some(read) = via.last_read() else { return Ok(()) };
        let (own_beats, heartbeat, times) = (shared.beats.accepted(), shared.heartbeat(), shared.times);
        let mut due = Vec::new();
        for (driver, is_dismissed) in held {
            let beat = via.beats().get(&driver).copied();
            let sight = Sight { read, beat, entry: via.heard(&driver), own_beats };
            let silence = shared.silences.entry(driver.clone()).or_insert_with(|| Silence::new(sight));
            silence.look(sight, longest, heartbeat);
            if is_dismissed {
                due.push((driver, beat, Because::Dismissed, Duration::ZERO));
            } else if silence.is_over(times) {
                due.push((driver, beat, Because::Silent, silence.healthy()));
            }
        }
        for (driver, beat, because, silent) in due {
            self.take_over(&driver, beat, because, silent)?;
        }
        Ok(())
    }

    /// Takes over the attempts of a driver, and puts a fence on its beat in the same push. If it
    /// beat meanwhile, nothing happens.
    fn take_over(
        &mut self,
        victim: &DriverId,
        beat: Option<crate::model::digest::Oid>,
        because: Because,
        silent: Duration,
    ) -> Result<(), Error> {
        // What is staged was decided before; it goes first.
        self.record(&[])?;
        let entries = self.losses(victim, because);
        let Some(shared) = self.shared.as_mut().filter(|_| !entries.is_empty()) else { return Ok(()) };
        shared.silences.remove(victim);
        let (run, first, writer) = (self.run.id().clone(), self.run.first(), self.run.writer().clone());
        let fence = Beat {
            taker: Some(shared.identity.id.clone()),
            ..Beat::new(run.clone(), first, victim.clone(), writer.clock.now())
        };
        let (oid, _kept) = beat::write(&writer, beat, &fence)?;
        let fence = Move { name: beat_ref(&run, victim), old: beat, new: Some(oid) };
        self.run.stage(&entries)?;
        let taken = self.run.publish_with(&[fence])?;
        if let Some(links) = taken {
            let words =
                if because == Because::Silent { format!(", silent for {} s", silent.as_secs()) } else { String::new() };
            (self.tell)(Progress::Note(format!("took over the attempts of driver {}{words}", victim.short())));
            links.iter().for_each(|link| (self.tell)(Progress::Recorded(link, &self.run.state)));
        }
        self.force_catch_up()
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
            let detail = format!("its driver {} was lost", victim.short());
            batch.entries.push(NewEntry::Plain(Event::ItemRequeued(ItemEnded {
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

    fn tell_beats(&self) {
        let Some(shared) = &self.shared else { return };
        let holds = self.running.keys().map(|at| self.run.state.graph.item(*at).id.clone()).collect();
        let free = self.slots_of_run().saturating_sub(self.running.len());
        shared.beats.set(free as u64, holds);
    }

    /// Stops the beats, and removes the copies of others' beats.
    pub(super) fn part(&mut self) -> Result<(), Error> {
        let Some(mut shared) = self.shared.take() else { return Ok(()) };
        shared.beats.stop();
        let store = self.run.store();
        Ok(refs::delete_all(store, &refs::list(store, &format::driver_refs(self.run.id()))?)?)
    }

    /// Returns how often to look for entries of other writers.
    pub(super) fn poll(&self) -> Duration {
        let drivers = self.run.via().map_or(1, |via| via.beats().len());
        self.shared.as_ref().map_or(super::POLL, |shared| shared.poll(drivers))
    }

    /// Rebuilds the schedule although no entry was read, because staged entries were dropped.
    fn force_catch_up(&mut self) -> Result<(), Error> {
        self.generation = self.run.generation().wrapping_sub(1);
        self.catch_up()
    }

    /// Records that the remote accepted our entries.
    pub(super) fn note_accepted(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.trouble = None;
            shared.beats.note_accepted(since_boot());
        }
    }

    /// Waits while the remote cannot be used; attempts go on meanwhile. Returns the error if
    /// waiting is pointless.
    pub(super) async fn hold_on(&mut self, error: Error, interrupt: &mut watch::Receiver<bool>) -> Result<(), Error> {
        let Some(shared) = self.shared.as_mut().filter(|_| is_of_remote(&error)) else { return Err(error) };
        let is_new = shared.trouble.is_none();
        let beats = shared.beats.accepted();
        let trouble = shared.trouble.get_or_insert(Trouble { since: Instant::now(), tries: 0, tries_at_end: 0, beats });
        trouble.tries += 1;
        if is_new {
            let note = format!("{}; attempts go on, and their results are kept", in_words(&error));
            (self.tell)(Progress::Note(note));
        }
        let is_poisoned = matches!(run_error(&error), Some(run::Error::Poisoned { .. }));
        let is_over = trouble.since.elapsed() > Duration::from_millis(shared.times.lost_after);
        if *interrupt.borrow() {
            trouble.tries_at_end += 1;
            if trouble.tries_at_end > LAST_TRIES {
                return Err(error);
            }
        } else if is_poisoned && is_over {
            return Err(error);
        }
        let is_refused = matches!(run_error(&error), Some(run::Error::PushRefused { .. }));
        if let (Some(run::Error::PushRefused { why, .. }), true) = (run_error(&error), trouble.tries >= REFUSALS)
            && beats >= trouble.beats + u64::from(REFUSALS)
        {
            // It takes beats and refuses this.
            self.run.fail_refused(why)?;
        }
        let longest = if is_refused && trouble.tries > 3 { AFTER_REFUSAL } else { LONGEST_PAUSE };
        let pause = (Duration::from_millis(250) * (1 << trouble.tries.min(7))).min(longest);
        self.generation = self.run.generation().wrapping_sub(1);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = interrupt.changed() => {}
        }
        self.catch_up_quietly();
        Ok(())
    }

    /// Rebuilds the schedule without recording anything.
    fn catch_up_quietly(&mut self) {
        self.rebuild();
    }
}

/// Returns true if the remote could not be used now, and may be later.
pub(super) fn is_of_remote(error: &Error) -> bool {
    run_error(error).is_some_and(run::Error::is_of_remote)
}

fn run_error(error: &Error) -> Option<&run::Error> {
    match error {
        Error::Run(error) | Error::Coordinate(coordinate::Error::Run(error)) => Some(error),
        _ => None,
    }
}
