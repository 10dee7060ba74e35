//! Drives a run together with other drivers, through a remote.
//!
//! The chain decides: a driver runs exactly the attempts that the chain says it holds. After each
//! read it stops what it runs and does not hold, and starts or ends what it holds and does not run.

use crate::clock::since_boot;
use crate::engine::attempt::spec::AttemptSpec;
use crate::engine::beat::{self, Beats, Pulse};
use crate::engine::end_entries::Batch;
use crate::engine::event::Progress;
use crate::engine::identity::Identity;
use crate::engine::silence::Silence;
use crate::engine::slots::HeldSlots;
use crate::engine::transcript_push::Upload;
use crate::git::passing;
use crate::git::refs;
use crate::git::tip::Tip;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::driver::{DriverId, RunShared};
use crate::model::entry::Claims;
use crate::model::entry::Event;
use crate::model::entry::Product;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::role::{Refused, Role};
use crate::model::state::Phase;
use crate::process::lease::Lease;
use crate::repository::Repository;
use crate::run::operate::via::Via;
use crate::run::operate::{self, NewEntry, OpenRun, sharing};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::claim_ahead::Waits;
use super::remote_trouble::Trouble;
use super::slow_push;
use super::{Driver, Error};

/// How often to read the remote, unless there are many drivers or short times.
const POLL: Duration = Duration::from_secs(2);

/// The number of drivers for which the time between two reads grows by a second.
const DRIVERS_PER_SECOND: u32 = 5;

/// The most pushes in a row that another process can win without leaving anything new.
const MOST_RACES: u32 = 4;

/// How a shared run is to be driven.
pub(crate) struct Joining<'r> {
    pub(in crate::engine) identity: Identity,
    pub(in crate::engine) tip: Tip,
    /// The times, if the run is not shared yet.
    pub(in crate::engine) times: RunShared,
    /// The repository, whose settings say which statements of others count.
    pub(in crate::engine) repository: &'r Repository,
    /// The earlier drivers of this repository, which have ended.
    pub(in crate::engine) predecessors: Vec<DriverId>,
    /// The transcripts to push, if that was requested.
    pub(in crate::engine) transcripts: Option<Upload>,
}

/// This driver among the drivers of a shared run.
pub(in crate::engine) struct Colleagues {
    pub(super) identity: Identity,
    pub(super) beats: Beats,
    pub(super) times: RunShared,
    pub(super) silences: BTreeMap<DriverId, Silence>,
    /// Claims that were pushed with an unknown outcome.
    unsure: BTreeMap<ItemIndex, Ahead>,
    /// The head that they were pushed upon. As long as it is the head, the push may still land.
    unsure_on: Option<Oid>,
    /// The generation of the state that was compared with what runs.
    compared: Option<u64>,
    pub(super) trouble: Option<Trouble>,
    /// Since when pushes are too slow for the run.
    pub(super) slow: Option<Instant>,
    /// When this driver took over attempts of earlier drivers of this repository.
    pub(super) recovered: Option<Instant>,
    /// The generation of the state after the last lost push, and how many were lost at it.
    raced: (u64, u32),
    /// When the driver last knew that it holds what it holds, since boot.
    pub(super) known: Duration,
    /// When the logs of others were last read.
    heard: Instant,
    /// Accepted claims that wait for a slot.
    pub(super) ahead: BTreeMap<ItemIndex, Ahead>,
    pub(super) waits: Waits,
    /// Since when there is something to push.
    pub(super) waiting: Option<Instant>,
    /// Whether the beats say so.
    pub(super) is_announced: bool,
}

/// A claim that waits for a slot.
pub(in crate::engine) struct Ahead {
    pub(super) spec: AttemptSpec,
    pub(super) manifest: Product,
    pub(super) since: Instant,
}

impl Ahead {
    pub(super) fn new(spec: AttemptSpec, manifest: Product) -> Self {
        Self { spec, manifest, since: Instant::now() }
    }
}

/// A claim with everything to start it.
pub(super) struct Claimed {
    pub(super) spec: AttemptSpec,
    pub(super) slots: HeldSlots,
    /// The dispatch manifest.
    pub(super) manifest: Product,
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
        predecessors: &[DriverId],
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self, Error> {
        let times = run.state.shared.unwrap_or(new);
        let store = run.store();
        let folder = store.common_dir().join("handoff").join("via");
        std::fs::create_dir_all(&folder).map_err(Error::Folder)?;
        let pulse = Pulse {
            tip,
            writer: run.writer().clone(),
            run: run.id().clone(),
            first: run.first(),
            identity: identity.clone(),
            heartbeat: Duration::from_millis(times.heartbeat),
            alive: folder.join(format!("{}.alive", run.id().encoded())),
            alone: false,
        };
        let beats = passing::insist(|| Beats::start(pulse.clone()), |why| beat::is_passing(why));
        let beats = beats.map_err(Error::Beat)?;
        let new = if run.state.shared.is_none() { slow_push::allowing_for(&beats, new, tell) } else { new };
        while run.state.shared.is_none() {
            let share = || run.record(&[NewEntry::plain(Event::RunShared(new))]);
            match passing::insist(share, |error| operate::Error::is_of_remote(error) && !error.is_raced()) {
                // Another driver may have shared it.
                Err(operate::Error::Raced) => {}
                recorded => drop(recorded?),
            }
        }
        let times = run.state.shared.unwrap_or(times);
        beats.set_heartbeat(Duration::from_millis(times.heartbeat));
        run.set_lost_after(Duration::from_millis(times.lost_after));
        run.recall_cut(predecessors)?;
        run.forget_drivers(predecessors);
        let (silences, unsure) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self {
            identity,
            beats,
            times,
            silences,
            unsure,
            unsure_on: None,
            compared: None,
            trouble: None,
            slow: None,
            recovered: None,
            raced: (0, 0),
            known: since_boot(),
            heard: Instant::now(),
            ahead: BTreeMap::new(),
            waits: Waits::default(),
            waiting: None,
            is_announced: false,
        })
    }

    /// Returns how often to read the remote.
    pub(super) fn poll(&self, drivers: usize) -> Duration {
        let many = Duration::from_secs(1) * u32::try_from(drivers).unwrap_or(u32::MAX) / DRIVERS_PER_SECOND;
        // Short times are for tests and fast networks.
        POLL.min(Duration::from_millis(self.times.lost_after / 4)).max(many)
    }

    /// Returns the items that were claimed, or perhaps were, and not started.
    pub(super) fn unstarted(&self) -> impl Iterator<Item = &ItemIndex> {
        self.ahead.keys().chain(self.unsure.keys())
    }

    pub(super) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.times.heartbeat)
    }

    pub(super) fn lost_after(&self) -> Duration {
        Duration::from_millis(self.times.lost_after)
    }

    /// Names this driver in a dispatch.
    pub(super) fn sign(&self, fired: &mut crate::model::entry::ItemFired) {
        fired.driver = Some(self.identity.id.clone());
        let (host, job) = (self.identity.host.clone(), self.identity.job.clone());
        let claims = fired.claims.take().map(|claims| *claims).unwrap_or_default();
        fired.claims = Claims { host, job, ..claims }.stated();
    }

    /// Returns the sign of life that an attempt with a lock needs. Without it, the attempt ends
    /// before a take-over is possible.
    pub(super) fn lease(&self) -> Lease {
        let limit = Duration::from_millis(self.times.lost_after / 4 * 3);
        Lease { file: self.beats.alive().to_owned(), limit }
    }

    /// Returns false if push after push was lost although the remote showed nothing new, as with a
    /// lock that stays there.
    pub(super) fn is_real_race(&mut self, generation: u64) -> bool {
        let count = if self.raced.0 == generation { self.raced.1 + 1 } else { 1 };
        self.raced = (generation, count);
        count < MOST_RACES
    }

    pub(super) fn id(&self) -> &DriverId {
        &self.identity.id
    }
}

impl Driver<'_> {
    /// Returns true if an attempt is running and this driver holds it.
    pub(super) fn holds(&self, at: ItemIndex, attempt: u32) -> bool {
        let state = &self.run.state.items[at];
        let by_us = self.shared.is_none() || self.is_ours(at);
        state.phase == Phase::Running && state.attempts == attempt && by_us
    }

    /// Returns true if the chain says that this driver holds the item. A claim with our id by
    /// another key is not ours.
    fn is_ours(&self, at: ItemIndex) -> bool {
        let (state, id) = (&self.run.state, &self.run.state.graph.item(at).id);
        let Some(shared) = &self.shared else { return false };
        let is_our_id = state.items[at].holder.as_ref().is_some_and(|holder| holder.driver == *shared.id());
        is_our_id && state.keys.dispatcher(id).is_none_or(|key| key == self.run.writer().signer.fingerprint())
    }

    /// Returns true if the chain has this very claim of ours.
    fn has_claim(&self, at: ItemIndex, claimed: &Claimed) -> bool {
        let manifest = self.run.state.items[at].manifest;
        self.holds(at, claimed.spec.attempt) && manifest.is_none_or(|manifest| manifest == claimed.manifest)
    }

    /// Starts the claims that were accepted.
    pub(super) fn start_claimed(&mut self, claimed: BTreeMap<ItemIndex, Claimed>) -> Result<(), Error> {
        if !claimed.is_empty() && !self.is_sure() {
            self.keep_unsure(claimed, Vec::new());
            return Ok(());
        }
        if let Some(shared) = &mut self.shared {
            shared.unsure.retain(|at, _| !claimed.contains_key(at));
        }
        let claimed: BTreeMap<_, _> =
            claimed.into_iter().filter(|(at, claimed)| self.has_claim(*at, claimed)).collect();
        let missing = self.fetch_inputs(&claimed);
        let mut batch = Batch::default();
        for (at, item_claim) in claimed {
            match &missing {
                Some(why) if item_claim.spec.inputs.values().any(|blob| !self.run.store().contains(blob.oid)) => {
                    self.crash(&mut batch, at, &format!("an input did not come: {why}"));
                }
                _ => self.start(at, item_claim.spec, item_claim.slots),
            }
        }
        if batch.entries.is_empty() { Ok(()) } else { self.record(&batch.entries) }
    }

    /// Fetches the inputs that a partial clone lacks, in one call. Returns why some did not come.
    fn fetch_inputs(&self, claimed: &BTreeMap<ItemIndex, Claimed>) -> Option<String> {
        let via = self.run.via()?;
        let inputs = claimed.values().flat_map(|claimed| claimed.spec.inputs.values().map(|blob| blob.oid));
        let missing: BTreeSet<Oid> = inputs.filter(|oid| !self.run.store().contains(*oid)).collect();
        if missing.is_empty() {
            return None;
        }
        let fetched = via.tip().fetch_blobs(&missing.into_iter().collect::<Vec<_>>());
        fetched.err().map(|error| in_words(&error))
    }

    /// Returns an error if this driver's key was dismissed.
    pub(super) fn expect_role(&self) -> Result<(), Error> {
        let key = self.run.writer().signer.fingerprint();
        if self.shared.is_none() || self.run.state.sealed || self.run.state.keys.has(&key, Role::Work) {
            return Ok(());
        }
        let (run, why) = (self.run.id().clone(), Refused::Role(&[Role::Work]));
        Err(operate::Error::Role { run, key, why }.into())
    }

    /// Records what people said in logs of their own since the last beat.
    pub(super) fn hear(&mut self) -> Result<(), Error> {
        let (Some(shared), Some(repository)) = (&mut self.shared, self.repository) else { return Ok(()) };
        if shared.heard.elapsed() < shared.heartbeat() {
            return Ok(());
        }
        shared.heard = Instant::now();
        match repository.hear(self.run) {
            Ok(true) => self.force_catch_up(),
            Ok(false) => Ok(()),
            Err(sharing::Error::Statements(why)) if matches!(why.downcast_ref(), Some(operate::Error::Raced)) => {
                self.force_catch_up()
            }
            // The next read of the chain tells if the remote is away.
            Err(error) => {
                (self.tell)(Progress::Note(in_words(&error)));
                self.force_catch_up()
            }
        }
    }

    /// Keeps claims that may have been accepted. They take no slot until that is known, because the
    /// same items can be claimed again.
    pub(super) fn keep_unsure(&mut self, claimed: BTreeMap<ItemIndex, Claimed>, ahead: Vec<(ItemIndex, Ahead)>) {
        let head = self.run.head().commit;
        if let Some(shared) = &mut self.shared {
            let claimed =
                claimed.into_iter().map(|(at, Claimed { spec, manifest, .. })| (at, Ahead::new(spec, manifest)));
            shared.unsure.extend(claimed.chain(ahead));
            shared.unsure_on = head;
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
        let may_land = shared.unsure_on == self.run.head().commit;
        let unsure = std::mem::take(&mut shared.unsure);
        let (current, late): (Vec<_>, Vec<_>) =
            unsure.into_iter().partition(|(at, unsure)| self.holds(*at, unsure.spec.attempt));
        self.keep_ahead(current);
        if let Some(sharing) = self.shared.as_mut().filter(|_| may_land) {
            sharing.unsure.extend(late);
        }
        let claimed: BTreeSet<ItemIndex> = match &self.shared {
            Some(sharing) => sharing.unsure.keys().chain(sharing.ahead.keys()).copied().collect(),
            None => BTreeSet::new(),
        };
        let ended: BTreeSet<ItemIndex> = self.ended.iter().map(|finished| finished.at).collect();
        let own = self.run.state.items.indices().filter(|at| self.is_ours(*at));
        let unknown = own.filter(|at| !(claimed.contains(at) || ended.contains(at)));
        let lost: Vec<ItemIndex> = unknown.filter(|at| !self.running.contains_key(at)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        lost.into_iter().for_each(|at| self.crash(&mut batch, at, "the driver had no job for it"));
        self.record(&batch.entries)
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
        let drivers = self.run.via().map_or(1, Via::drivers);
        self.shared.as_ref().map_or(super::POLL, |shared| shared.poll(drivers))
    }

    /// Makes the next turn rebuild the schedule although no entry was read, because staged entries
    /// were dropped.
    pub(super) fn look_again(&mut self) {
        self.generation = self.run.generation().wrapping_sub(1);
    }

    /// Rebuilds the schedule although no entry was read.
    pub(super) fn force_catch_up(&mut self) -> Result<(), Error> {
        self.look_again();
        self.catch_up()
    }

    /// Records that the remote accepted our entries, which were sent no earlier than `sent`.
    pub(super) fn note_accepted(&mut self, sent: Duration) {
        self.note_known(sent);
        if let Some(shared) = &mut self.shared {
            shared.trouble = None;
            shared.waits.accepted();
            (shared.waiting, shared.is_announced) = (None, false);
            shared.beats.note_accepted(sent);
        }
    }
}
