//! What is dispatched: items that may run as far as their run goes, and that have what others in the repository could hold.

use std::collections::BTreeMap;

use crate::engine::claims::{Asked, Claim, Ticket};
use crate::engine::decide::Limits;
use crate::engine::event::Progress;
use crate::engine::outcome::Batch;
use crate::engine::{command, prepare, products};
use crate::model::entry::Event;
use crate::model::state::Phase;
use crate::model::time::Moment;
use crate::run::NewEntry;
use crate::worker::workspace::Workspace;

use super::{Driver, Error};

/// An item that was decided to be dispatched, and that others are in the way of.
pub(super) struct Queued {
    /// Its place in the lines, unless that is to be asked for again.
    ticket: Option<Ticket>,
    /// Whether that is the queue, which is full.
    full: bool,
}

/// Items that are dispatched, by position, each with what it has for itself.
type Claimed = Vec<(usize, Claim)>;

impl Driver<'_> {
    /// Dispatches what may run now, and records that together with what is staged; returns when to look again.
    pub(super) fn dispatch(&mut self) -> Result<Option<Moment>, Error> {
        let mut limits = command::limits(&self.run.state.submitted.queue, &self.machine.config);
        limits.concurrency = self.machine.jobs.unwrap_or(limits.concurrency);
        loop {
            let (claimed, wake) = self.claim(limits)?;
            if claimed.is_empty() {
                // Taking in what others appended may let more be fired.
                if self.run.has_staged() {
                    self.record(&[])?;
                    continue;
                }
                return Ok(wake);
            }
            let mut batch = Batch::default();
            let mut jobs = BTreeMap::new();
            for (at, claim) in claimed {
                match prepare::prepare(self.run, &self.machine, at) {
                    Ok((fired, manifest, job)) => {
                        claim.is_for(&Workspace::place(&self.machine.host, &job.run, &job.item, job.attempt))?;
                        let fits = |products: &_| products::fit(&self.machine.host, &job, products);
                        let found = self.machine.reusable.as_mut().and_then(|all| all.find(&manifest, &fits));
                        if let Some(all) = self.machine.reusable.as_ref().filter(|_| found.is_none()) {
                            let why = all.why_not(&manifest);
                            (self.tell)(Progress::Note(format!("{}: not reused: {why}", job.item)));
                        }
                        batch.entries.push(NewEntry::Fired(Event::ItemFired(fired), Box::new(manifest)));
                        match found {
                            Some(found) => batch.reused(&job, found),
                            None => drop(jobs.insert(at, (job, claim))),
                        }
                    }
                    Err(reason) => batch.failed(&self.run.state, at, 0, reason),
                }
            }
            self.record(&batch.entries)?;
            for (at, (job, claim)) in jobs {
                let state = &self.run.state.items[at];
                if state.phase == Phase::Running && state.attempts == job.attempt {
                    self.start(at, job, claim);
                }
            }
        }
    }

    /// Returns the items that can be dispatched now, each with what it has for itself, and when to look again by the run's own word.
    fn claim(&mut self, limits: Limits) -> Result<(Claimed, Option<Moment>), Error> {
        let mut claimed = Vec::new();
        for (at, queued) in std::mem::take(&mut self.queued) {
            claimed.extend(self.ask(at, queued.ticket)?.map(|claim| (at, claim)));
        }
        // What only waits for a lock has no place in the queue, which is for others meanwhile; where that is full nobody else comes in.
        let aside = if self.queued.values().any(|queued| queued.full) { 0 } else { self.queued.len() };
        let limits = Limits { concurrency: limits.concurrency.saturating_add(aside) };
        let decision = self.schedule.decide(&self.run.state, limits, self.now());
        for at in decision.fire {
            claimed.extend(self.ask(at, None)?.map(|claim| (at, claim)));
        }
        Ok((claimed, decision.wake))
    }

    fn ask(&mut self, at: usize, ticket: Option<Ticket>) -> Result<Option<Claim>, Error> {
        let locks = &self.run.state.graph.item(at).resource_locks;
        Ok(match self.claims.ask(locks, ticket)? {
            Asked::Taken(claim) => Some(claim),
            Asked::Refused { ticket, full } => {
                self.queued.insert(at, Queued { ticket, full });
                None
            }
        })
    }
}
