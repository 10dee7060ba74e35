//! The driver: decides what comes next, records it, does it, and records the result.
//!
//! Only the driver appends while it runs; attempts report to it. Everything is recorded before it
//! happens.

mod begin;
mod claim_ahead;
mod decline;
mod dispatch;
mod error;
mod finish;
mod freshness;
mod machine_shortage;
mod record;
mod remote_trouble;
mod renewal;
mod rules;
pub(super) mod shared;
mod slow_push;
mod slower_drivers;
mod start;
mod take_over;
mod transcripts;
mod worktrees;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::clock::{Clock, Steady};
use crate::engine::event::Progress;
use crate::git::cancellation::Cancellation;
use crate::git::passing;
use crate::git::refs;
use crate::model::entry::RunSealed;
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::state::Phase;
use crate::model::time::Moment;
use crate::repository::Repository;
use crate::run::operate::OpenRun;
use crate::run::operate::via::Via;

use super::decide::Schedule;
use super::end_entries::Batch;
use super::finished_attempt::FinishedAttempt;
use super::machine::Machine;
use super::slots::{HeldSlots, RETRY_INTERVAL, Slots};
use super::{command, recover};
use dispatch::Queued;
pub use error::Error;
use machine_shortage::Short;
use rules::RuleInput;
pub(crate) use shared::Joining;
use shared::{Claimed, Colleagues};
pub(crate) use transcripts::drive;

/// How often to poll the ref for entries from other writers, such as a cancellation.
const POLL: Duration = Duration::from_millis(250);

/// How often to measure the disk space of the worktrees, which looks at every file in them.
const MEASURE: Duration = Duration::from_secs(60);

/// How driving a run ended.
pub(crate) struct Settled {
    /// Whether it was interrupted before the run had settled.
    pub(crate) interrupted: bool,
    /// The seal, if the run was sealed now.
    pub(crate) sealed: Option<RunSealed>,
}

struct Running {
    attempt: u32,
    cancel: watch::Sender<bool>,
    /// Kept until nothing of the attempt is left.
    _slots: HeldSlots,
}

struct Driver<'a> {
    run: &'a mut OpenRun,
    machine: Machine,
    schedule: Schedule,
    steady: Steady,
    generation: u64,
    /// The input of the rules when they were last applied.
    rules_applied_to: Option<RuleInput>,
    running: BTreeMap<ItemIndex, Running>,
    /// The slots of the repository, and the items that wait for them.
    slots: Slots,
    queued: BTreeMap<ItemIndex, Queued>,
    /// Attempts with a staged end. Their worktrees stay until it is recorded.
    ended: Vec<FinishedAttempt>,
    /// Attempts that ended, whose transcripts could not be stored yet.
    unfiled: Vec<FinishedAttempt>,
    /// The items that this machine cannot run, with the reasons.
    declined: BTreeMap<ItemIndex, String>,
    /// The reasons for items that it could not run when it last had a slot for them.
    lacks: BTreeMap<ItemIndex, String>,
    /// When settings and trust were last read.
    renewed: Instant,
    /// When the declined items were last tried.
    retried: Instant,
    /// Notes that the operator already has.
    reported: BTreeSet<String>,
    /// The condition of this machine that prevents further attempts.
    short: Option<Short>,
    /// Attempts whose work could not be saved for lack of space, and waits in their worktrees.
    unsaved: BTreeSet<(ItemId, u32)>,
    /// Whether the driver was interrupted while this machine lacked something.
    is_ending: bool,
    /// The most items to run at once, after this machine lacked something for more.
    most: Option<usize>,
    /// How long the last recording took.
    append_time: Duration,
    reports: mpsc::UnboundedSender<FinishedAttempt>,
    /// Worktrees being removed. The driver waits for them before it releases the run.
    removals: JoinSet<Option<String>>,
    tell: &'a mut dyn FnMut(Progress<'_>),
    /// This driver among those of a shared run.
    shared: Option<Colleagues>,
    /// The repository of a shared run.
    repository: Option<&'a Repository>,
}

/// Drives a run whose lock is held, until it settles or is interrupted.
async fn drive_locked(
    run: &mut OpenRun,
    mut machine: Machine,
    joining: Option<Joining<'_>>,
    mut interrupt: watch::Receiver<bool>,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Settled, Error> {
    remote_trouble::refresh_patiently(run)?;
    let interrupted = interrupt.clone();
    let stop = Cancellation::when(move || *interrupted.borrow());
    machine.host = Arc::new(machine.host.stopped_by(stop));
    machine.host.prepare(run.state.submitted.base)?;
    if joining.is_some() {
        begin::expect_driven_here(run, &machine)?;
    }
    let left = recover::clear(run.id(), &run.state, &machine.host, &|item| machine.filters(item))?;
    left.into_iter().for_each(|note| tell(Progress::Note(note)));
    if run.state.sealed {
        if joining.is_none() {
            run.mend_seal()?;
        }
        return Ok(Settled { interrupted: false, sealed: None });
    }
    for name in [format::run_ref, format::base_ref, format::transcripts_ref, format::salvage_ref] {
        refs::clear_stale_lock(run.store(), &name(run.id())).map_err(Error::StaleLock)?;
    }
    if joining.is_none() {
        run.mend()?;
    }
    begin::clock_note(run).into_iter().for_each(|note| tell(Progress::Note(note)));
    let (reports, mut finished) = mpsc::unbounded_channel();
    let mut driver = Driver::new(run, machine, reports, tell);
    driver.begin(joining)?;
    let result = driver.run_loop(&mut finished, &mut interrupt).await;
    if result.is_err() {
        driver.abandon(&mut finished).await;
    }
    driver.tidy().await;
    driver.part()?;
    result
}

impl<'a> Driver<'a> {
    fn new(
        run: &'a mut OpenRun,
        machine: Machine,
        reports: mpsc::UnboundedSender<FinishedAttempt>,
        tell: &'a mut dyn FnMut(Progress<'_>),
    ) -> Self {
        let clock = run.writer().clock;
        let steady = Steady::new(clock);
        let schedule = Schedule::new(&run.state, &BTreeSet::new(), moment(clock, &steady));
        let generation = run.generation();
        let queue = run.state.submitted.queue.clone();
        let places = command::concurrency(&queue, &machine.config).max(machine.jobs.unwrap_or(0));
        let slots = Slots::new(&run.store().common_dir(), &queue, places);
        Self {
            run,
            machine,
            schedule,
            steady,
            generation,
            rules_applied_to: None,
            running: BTreeMap::new(),
            slots,
            queued: BTreeMap::new(),
            ended: Vec::new(),
            declined: BTreeMap::new(),
            lacks: BTreeMap::new(),
            renewed: Instant::now(),
            retried: Instant::now(),
            reported: BTreeSet::new(),
            unfiled: Vec::new(),
            short: None,
            unsaved: BTreeSet::new(),
            is_ending: false,
            most: None,
            append_time: Duration::ZERO,
            reports,
            removals: JoinSet::new(),
            tell,
            shared: None,
            repository: None,
        }
    }

    /// Ends what a dead driver left, and begins to drive a shared run with the others.
    fn begin(&mut self, joining: Option<Joining<'a>>) -> Result<(), Error> {
        let Some(Joining { identity, tip, times, repository, predecessors, .. }) = joining else {
            return self.recover();
        };
        if self.run.state.shared.is_none() {
            self.recover()?;
        }
        self.repository = Some(repository);
        self.shared = Some(Colleagues::start(self.run, identity, tip, times, &predecessors, self.tell)?);
        self.rebuild();
        passing::insist(
            || loop {
                match self.take_over_predecessors(&predecessors).and_then(|()| self.sweep()) {
                    Err(error) if remote_trouble::is_raced(&error) => self.rebuild(),
                    Err(error) => {
                        self.rebuild();
                        return Err(error);
                    }
                    Ok(()) => return Ok(()),
                }
            },
            remote_trouble::is_of_remote,
        )
    }

    /// Records an end for the attempts that a dead driver left running.
    fn recover(&mut self) -> Result<(), Error> {
        let items = self.run.state.items.indexed();
        let stranded: Vec<ItemIndex> =
            items.filter(|(_, item)| item.phase == Phase::Running).map(|(at, _)| at).collect();
        let mut batch = Batch::default();
        for at in stranded {
            self.crash(&mut batch, at, "the driver died while the attempt ran");
        }
        self.record(&batch.entries)?;
        self.sweep()
    }

    /// Records that an attempt was lost to a crash, or that its item fails after too many of them.
    fn crash(&self, batch: &mut Batch, at: ItemIndex, detail: &str) {
        let state = &self.run.state;
        // This includes the current one.
        let crashes = state.items[at].crashes + 1;
        if crashes <= self.machine.config.max_crashes {
            batch.crashed(state, at, detail.to_owned());
        } else {
            let detail = format!("{detail}, as {} did before it", state.items[at].crashes);
            batch.failed(state, at, state.items[at].attempts, detail);
        }
    }

    async fn run_loop(
        &mut self,
        finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>,
        interrupt: &mut watch::Receiver<bool>,
    ) -> Result<Settled, Error> {
        let mut measure = tokio::time::interval(MEASURE);
        measure.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut polled = Instant::now();
        loop {
            match self.turn(finished, interrupt, &mut measure, &mut polled).await {
                Ok(None) => {}
                Ok(Some(settled)) => return Ok(settled),
                Err(error) => self.hold_on(error, interrupt).await?,
            }
        }
    }

    /// Does what is due, and waits for the next event. Returns how the run ended, once it did.
    async fn turn(
        &mut self,
        finished: &mut mpsc::UnboundedReceiver<FinishedAttempt>,
        interrupt: &mut watch::Receiver<bool>,
        measure: &mut tokio::time::Interval,
        polled: &mut Instant,
    ) -> Result<Option<Settled>, Error> {
        if *interrupt.borrow() {
            return self.interrupted(finished).await.map(Some);
        }
        self.renew()?;
        self.file_again()?;
        self.retry_declined();
        self.expect_role()?;
        self.catch_up()?;
        self.compare()?;
        let held_back = self.settle_claims()?;
        if let Some(pause) = self.pause_before_push() {
            return self.gather(pause, finished, interrupt).await.map(|()| None);
        }
        if self.has_to_push() && self.run.via().is_some_and(Via::awaits_turn) {
            self.read_at_turn()?;
            return Ok(None);
        }
        self.apply_rules()?;
        let wake = if held_back.is_none() { self.dispatch()? } else { None };
        if self.run.state.is_settled() && self.running.is_empty() {
            return self.finish();
        }
        if self.schedule.is_idle() && self.running.is_empty() {
            let is_left_to_people = self.run.state.is_left_to_people();
            if is_left_to_people && !self.waits_for_people() {
                return Ok(Some(Settled { interrupted: false, sealed: None }));
            }
            if !is_left_to_people && self.shared.is_none() {
                return self.leave_declined().map(Some);
            }
        }
        // Holders do not announce that they release a slot, so this retries.
        let retry = (!self.queued.is_empty()).then_some(RETRY_INTERVAL);
        let due = wake.map(|due| self.until(due));
        let sleep = due.into_iter().chain(retry).chain(held_back).min();
        let poll = tokio::time::Instant::from_std(*polled + self.poll());
        tokio::select! {
            Some(first) = finished.recv() => {
                let batch = self.collect_more(first, finished).await;
                self.reconcile(batch)?;
            }
            () = tokio::time::sleep(sleep.unwrap_or(POLL)), if sleep.is_some() => {}
            () = tokio::time::sleep_until(poll) => {
                *polled = Instant::now();
                if !self.has_just_read() {
                    self.refresh()?;
                }
                *polled = Instant::now();
                self.catch_up()?;
                self.observe()?;
                self.hear()?;
            }
            _ = measure.tick() => self.measure(),
            _ = interrupt.changed() => {}
        }
        Ok(None)
    }

    /// Rebuilds the schedule if other writers appended, and ends the attempts that the state no
    /// longer has.
    fn catch_up(&mut self) -> Result<(), Error> {
        if self.generation == self.run.generation() {
            return Ok(());
        }
        self.rebuild();
        self.sweep()
    }

    /// Rebuilds the schedule from the state, and ends the attempts that the state no longer has.
    fn rebuild(&mut self) {
        self.generation = self.run.generation();
        // Their claims are decided again.
        self.queued.clear();
        self.declined.clear();
        let alive = self.running.keys().copied().collect();
        self.schedule = Schedule::new(&self.run.state, &alive, self.now());
        let lost: Vec<(ItemIndex, u32)> = self
            .running
            .iter()
            .filter(|(at, running)| !self.holds(**at, running.attempt))
            .filter(|(_, running)| !running.cancel.send_replace(true))
            .map(|(at, running)| (*at, running.attempt))
            .collect();
        lost.into_iter().for_each(|(at, attempt)| self.tell_taken(at, attempt));
    }

    fn now(&self) -> Moment {
        moment(self.run.writer().clock, &self.steady)
    }

    fn until(&self, due: Moment) -> Duration {
        let wait = due.millis().saturating_sub(self.now().millis());
        Duration::from_millis(u64::try_from(wait).unwrap_or(0))
    }
}

/// Returns the moment to decide by. Under a pinned clock no wait would end, so none is kept.
fn moment(clock: Clock, steady: &Steady) -> Moment {
    if clock.is_pinned() { Moment::from_millis(i64::MAX) } else { steady.now() }
}
