//! Dispatches items that are ready in their run and whose slots are free in the repository.

use std::collections::BTreeMap;

use crate::engine::attempt::spec::AttemptSpec;
use crate::engine::end_entries::Batch;
use crate::engine::event::Progress;
use crate::engine::prepare::{self, Prepared};
use crate::engine::slots::{Claim, HeldSlots, Ticket};
use crate::engine::{command, product_capture};
use crate::model::entry::Event;
use crate::model::item_index::ItemIndex;
use crate::model::time::Moment;
use crate::run::operate::NewEntry;
use crate::run::operate::via::Via;
use crate::worktree::workspace::Workspace;

use super::{Claimed, Driver, Error, remote_trouble};

/// An item to dispatch whose slots are taken.
pub(super) struct Queued {
    /// Its position in the lines, or `None` if it has to claim one again.
    ticket: Option<Ticket>,
    queue_is_full: bool,
}

/// Items to dispatch, by position, with their slots.
type Ready = Vec<(ItemIndex, HeldSlots)>;

impl Driver<'_> {
    /// Dispatches all items that can run now, and records that with the staged entries. Returns
    /// when to look again.
    pub(super) fn dispatch(&mut self) -> Result<Option<Moment>, Error> {
        loop {
            let concurrency = self.concurrency(self.slots_of_run());
            let (claimed, wake) = self.claim_ready(concurrency)?;
            if claimed.is_empty() {
                // Entries of other writers can make more items ready.
                if self.run.has_staged() {
                    self.record(&[])?;
                    continue;
                }
                return Ok(wake);
            }
            let mut batch = Batch::default();
            let mut jobs = BTreeMap::new();
            for (at, slots) in claimed {
                match prepare::prepare(self.run, &self.machine, at) {
                    Ok(Prepared { mut fired, manifest, mut spec }) => {
                        self.lacks.remove(&at);
                        if let Some(shared) = &self.shared {
                            shared.sign(&mut fired);
                            let has_locks = !self.run.state.graph.item(at).resource_locks.is_empty();
                            spec.lease = has_locks.then(|| shared.lease());
                        }
                        self.record_holder(&slots, &spec)?;
                        let found = self.machine.reusable.as_mut().and_then(|all| {
                            all.find(spec.base, &fired, &|products: &_| {
                                product_capture::fit(
                                    &self.machine.host,
                                    &self.machine.schemas,
                                    &spec.promised,
                                    products,
                                )
                            })
                        });
                        if let Some(all) = self.machine.reusable.as_ref().filter(|_| found.is_none()) {
                            let why = all.why_not(spec.base, &fired, &manifest);
                            (self.tell)(Progress::Note(format!("{}: not reused: {why}", fired.item)));
                        }
                        let (fired_by, digest) = (fired.driver.clone(), fired.manifest);
                        batch.entries.push(NewEntry::fired(Event::ItemFired(fired), &manifest));
                        match found {
                            Some(found) => batch.reused(&spec, fired_by, found),
                            None => drop(jobs.insert(at, Claimed { spec, slots, manifest: digest })),
                        }
                    }
                    Err(unready) => self.cannot_dispatch(at, unready, &mut batch),
                }
            }
            let ahead = if self.short.is_none() { self.claim_ahead(concurrency, &mut batch) } else { Vec::new() };
            if let Err(error) = self.record(&batch.entries) {
                // A claim whose answer was lost may have been accepted, or may be later.
                if !remote_trouble::is_raced(&error) {
                    self.keep_unsure(jobs, ahead);
                }
                return Err(error);
            }
            self.start_claimed(jobs)?;
            self.keep_ahead(ahead);
        }
    }

    /// Records which attempt holds slots.
    pub(super) fn record_holder(&self, slots: &HeldSlots, spec: &AttemptSpec) -> Result<(), Error> {
        let place = Workspace::place(&self.machine.host, self.run.id(), &spec.item, spec.attempt);
        Ok(slots.record_holder(&place)?)
    }

    /// Returns how many items of the run may run here at once.
    pub(super) fn slots_of_run(&self) -> usize {
        let queue = &self.run.state.submitted.queue;
        let slots = self.machine.jobs.unwrap_or_else(|| command::concurrency(queue, &self.machine.config));
        self.slots_when_short(slots)
    }

    /// Returns the items that can be dispatched now, and when the schedule has to be asked again.
    fn claim_ready(&mut self, concurrency: usize) -> Result<(Ready, Option<Moment>), Error> {
        if self.is_slow() || self.holds_off() {
            return Ok((Vec::new(), None));
        }
        let mut claimed = Vec::new();
        for (at, queued) in std::mem::take(&mut self.queued) {
            claimed.extend(self.claim(at, queued.ticket)?.map(|slots| (at, slots)));
        }
        // An item that waits only for a lock takes no place, unless the queue is full anyway.
        let is_full = self.queued.values().any(|queued| queued.queue_is_full);
        let without_place = if is_full { 0 } else { self.queued.len() };
        let concurrency = concurrency.saturating_add(without_place);
        let decision = self.schedule.decide(&self.run.state, concurrency, self.now());
        for at in decision.fire {
            claimed.extend(self.claim(at, None)?.map(|slots| (at, slots)));
        }
        Ok((claimed, decision.wake))
    }

    /// Returns true if a lock of an item may still be held by a worker on another machine, whose
    /// attempt was cancelled or taken from a dismissed key.
    fn is_lock_cut(&self, at: ItemIndex) -> bool {
        let graph = &self.run.state.graph;
        let locks = &graph.item(at).resource_locks;
        let mut cut = self.run.via().into_iter().flat_map(Via::cut);
        !locks.is_empty() && cut.any(|cut| graph.item(cut).resource_locks.iter().any(|lock| locks.contains(lock)))
    }

    fn claim(&mut self, at: ItemIndex, ticket: Option<Ticket>) -> Result<Option<HeldSlots>, Error> {
        if self.is_lock_cut(at) {
            self.queued.insert(at, Queued { ticket: None, queue_is_full: false });
            return Ok(None);
        }
        let locks = &self.run.state.graph.item(at).resource_locks;
        Ok(match self.slots.claim(locks, ticket)? {
            Claim::Granted(slots) => Some(slots),
            Claim::Refused { ticket, queue_is_full } => {
                self.queued.insert(at, Queued { ticket, queue_is_full });
                None
            }
        })
    }
}
