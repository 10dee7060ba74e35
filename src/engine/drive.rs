//! The driver: it asks what comes next, records it, does it, and records what came of it.
//!
//! It alone appends while it runs. Attempts only report to it; nothing happens that is not recorded first.

mod dispatching;
mod ending;
mod growing;
mod spent;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::clock::{Clock, Steady};
use crate::engine::event::Progress;
use crate::git::refs;
use crate::git::stop::Stop;
use crate::model::entry::RunSealed;
use crate::model::format;
use crate::model::state::Phase;
use crate::model::time::Moment;
use crate::run::{self, NewEntry, OpenRun, coordinate};
use crate::worker::{capture, survivors, workspace};

use super::attempt::{Finished, Job, Verdict};
use super::claims::{self, AGAIN, Claim, Claims};
use super::decide::Schedule;
use super::hold::{self, Hold};
use super::machine::Machine;
use super::outcome::Batch;
use super::{attempt, command, recover, retain};
use dispatching::Queued;
use growing::Basis;

/// How often the ref is looked at for what others appended, such as a cancellation.
const POLL: Duration = Duration::from_millis(250);

/// How often what worktrees take on the disk is measured: that looks at every file in them.
const MEASURE: Duration = Duration::from_secs(60);

/// Clocks may differ by an hour before it is worth a word.
const LEEWAY_MILLIS: u64 = 60 * 60 * 1000;

/// How driving a run ended.
#[derive(Clone, Debug)]
pub struct Settled {
    /// Whether it was interrupted before the run had settled.
    pub interrupted: bool,
    /// The seal, if the run was sealed now.
    pub sealed: Option<RunSealed>,
}

struct Running {
    attempt: u32,
    cancel: watch::Sender<bool>,
    /// Held until nothing of the attempt is left.
    _claim: Claim,
}

struct Driver<'a> {
    run: &'a mut OpenRun,
    machine: Machine,
    schedule: Schedule,
    steady: Steady,
    generation: u64,
    /// What there was of what rules go by when they were looked at.
    judged: Option<Basis>,
    running: BTreeMap<usize, Running>,
    /// What may be claimed in the repository, and the items that wait for others' claims.
    claims: Claims,
    queued: BTreeMap<usize, Queued>,
    /// Attempts whose end is staged: their worktrees wait until it is recorded.
    ended: Vec<Finished>,
    /// Why nothing more is begun: a file system is full.
    full: Option<String>,
    /// How long it took to record something last.
    append: Duration,
    reports: mpsc::UnboundedSender<Finished>,
    /// Worktrees being removed; waited for before the run is let go.
    removals: JoinSet<Option<String>>,
    tell: &'a mut dyn FnMut(Progress<'_>),
}

/// Drives a run until it settles or is interrupted.
///
/// A run that a crash left behind is continued: what was stranded is salvaged, recorded and dispatched again. On an error
/// the run is as the last visible entry says, no process of ours is left running, and driving it again continues it.
pub async fn drive(
    run: &mut OpenRun,
    mut machine: Machine,
    mut interrupt: watch::Receiver<bool>,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Settled, Error> {
    let hold = Hold::take(&run.store().common_dir(), run.id())?;
    // What a worker detaches from itself then falls to us, and is found and ended with it.
    survivors::become_subreaper();
    run.refresh()?;
    let interrupted = interrupt.clone();
    let stop = Stop::when(move || *interrupted.borrow());
    machine.host = Arc::new(machine.host.stopped_by(stop));
    machine.host.prepare()?;
    let left = recover::clear(run.id(), &run.state, &machine.host, &|item| machine.filters(item))?;
    left.into_iter().for_each(|note| tell(Progress::Note(note)));
    if run.state.sealed {
        run.mend_seal()?;
        return Ok(Settled { interrupted: false, sealed: None });
    }
    for name in [format::run_ref, format::base_ref, format::transcripts_ref, format::salvage_ref] {
        refs::clear_stale_lock(run.store(), &name(run.id())).map_err(Error::StaleLock)?;
    }
    run.mend()?;
    behind(run).into_iter().for_each(|note| tell(Progress::Note(note)));
    let (reports, mut finished) = mpsc::unbounded_channel();
    let clock = run.writer().clock;
    let steady = Steady::new(clock);
    let schedule = Schedule::new(&run.state, &BTreeSet::new(), moment(clock, &steady));
    let generation = run.generation();
    let queue = run.state.submitted.queue.clone();
    let places = command::limits(&queue, &machine.config).concurrency.max(machine.jobs.unwrap_or(0));
    let claims = Claims::new(&run.store().common_dir(), &queue, places);
    let mut driver = Driver {
        run,
        machine,
        schedule,
        steady,
        generation,
        judged: None,
        running: BTreeMap::new(),
        claims,
        queued: BTreeMap::new(),
        ended: Vec::new(),
        full: None,
        append: Duration::ZERO,
        reports,
        removals: JoinSet::new(),
        tell,
    };
    driver.recover()?;
    let result = driver.turn(&mut finished, &mut interrupt).await;
    if result.is_err() {
        driver.abandon(&mut finished).await;
    }
    driver.tidy().await;
    drop(hold);
    result
}

/// Says that the clock here is behind the dates of a run, if it is by more than clocks usually differ: no entry is dated before
/// the one that it follows.
fn behind(run: &OpenRun) -> Option<String> {
    let now = run.writer().clock.now();
    let last = run.head().at.filter(|last| now.plus_millis(LEEWAY_MILLIS) < *last)?;
    Some(format!(
        "it is {now} here, and the run dates its last entry {last}: one of the two clocks is wrong, and what follows gets \
         that date"
    ))
}

impl Driver<'_> {
    /// Records an end for the attempts that a dead driver left without one.
    fn recover(&mut self) -> Result<(), Error> {
        let stranded: Vec<usize> =
            (0..self.run.state.items.len()).filter(|at| self.run.state.items[*at].phase == Phase::Running).collect();
        let mut batch = Batch::default();
        for at in stranded {
            let detail = "the driver died while the attempt ran".to_owned();
            let state = &self.run.state;
            // This one included.
            let crashes = state.items[at].crashes + 1;
            if crashes <= self.machine.config.max_crashes {
                batch.crashed(state, at, detail);
            } else {
                let detail = format!("{detail}, as {} did before it", state.items[at].crashes);
                batch.failed(state, at, state.items[at].attempts, detail);
            }
        }
        self.record(&batch.entries)?;
        self.sweep()
    }

    async fn turn(
        &mut self,
        finished: &mut mpsc::UnboundedReceiver<Finished>,
        interrupt: &mut watch::Receiver<bool>,
    ) -> Result<Settled, Error> {
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut measure = tokio::time::interval(MEASURE);
        measure.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if *interrupt.borrow() {
                return self.interrupted(finished).await;
            }
            if let Some(why) = self.full.take() {
                self.interrupted(finished).await?;
                return Err(Error::NoSpace(why));
            }
            self.coordinate()?;
            let wake = self.dispatch()?;
            if self.run.state.is_settled() && self.running.is_empty() {
                match self.finish()? {
                    Some(settled) => return Ok(settled),
                    None => continue,
                }
            }
            if self.schedule.is_idle() && self.running.is_empty() {
                if self.run.state.is_left_to_people() {
                    return Ok(Settled { interrupted: false, sealed: None });
                }
                return Err(Error::Stuck);
            }
            // Whoever holds what is wanted says nothing when it is free.
            let again = (!self.queued.is_empty()).then_some(AGAIN);
            let due = wake.map(|due| self.until(due));
            let sleep = due.into_iter().chain(again).min();
            tokio::select! {
                Some(first) = finished.recv() => {
                    let batch = self.gather(first, finished).await;
                    self.reconcile(batch)?;
                }
                () = tokio::time::sleep(sleep.unwrap_or(POLL)), if sleep.is_some() => {}
                _ = poll.tick() => {
                    self.run.refresh()?;
                    self.catch_up()?;
                }
                _ = measure.tick() => self.measure(),
                _ = interrupt.changed() => {}
            }
        }
    }

    fn start(&mut self, at: usize, job: Job, claim: Claim) {
        let (cancel, cancelled) = watch::channel(false);
        self.running.insert(at, Running { attempt: job.attempt, cancel, _claim: claim });
        let reports = self.reports.clone();
        let pinned = self.run.writer().clock.is_pinned();
        let host = self.machine.host.clone();
        let lost = Finished::none(&job);
        let attempt = tokio::spawn(attempt::run(host, job, cancelled));
        tokio::spawn(async move {
            // Whatever became of it, the driver hears of it: what is lost has failed, and nothing waits for it for ever.
            let mut finished = attempt.await.unwrap_or_else(|error| lost.because(&error.to_string()));
            // Under a pinned clock no time passes, so that the same run gives the same entries.
            if pinned {
                finished.duration_ms = 0;
                finished.blocks.iter_mut().for_each(|block| block.duration_ms = 0);
            }
            // The driver is gone only when it is being torn down.
            let _ = reports.send(finished);
        });
    }

    /// Stages what came of attempts: it is recorded with what is dispatched next, before anything is.
    ///
    /// A worktree goes when its attempt's end stands in the chain and not before: until then it is what salvage works on.
    fn reconcile(&mut self, reports: Vec<Finished>) -> Result<(), Error> {
        let mut batch = Batch::default();
        for finished in &reports {
            self.running.remove(&finished.at);
            self.tell_notes(finished);
            if let Verdict::NoSpace(why) = &finished.verdict {
                self.full = Some(why.clone());
            }
            let state = &self.run.state.items[finished.at];
            if state.phase == Phase::Running && state.attempts == finished.attempt {
                let now = self.run.writer().clock.now();
                let left = command::attempts_left(&self.run.state, finished.at, &self.machine.config);
                batch.finished(&self.run.state, finished, left, now);
            } else {
                // It was cancelled meanwhile, so its end is in the chain already; only now is it over.
                self.schedule.ended(&self.run.state, finished.at);
            }
        }
        // Transcripts and salvage come first: they may be lost, but an entry must not be seen before what it speaks of.
        if let Err(error) = retain::file(self.run, &reports) {
            self.dispose(reports, false, false);
            return Err(error.into());
        }
        self.ended.extend(reports);
        self.stage(&batch.entries)?;
        // What others had ended already leaves nothing to record.
        if self.run.has_staged() { Ok(()) } else { self.record(&[]) }
    }

    fn tell_notes(&mut self, finished: &Finished) {
        finished.notes.iter().for_each(|note| (self.tell)(Progress::Note(note.clone())));
    }

    /// Takes entries into the state, and the schedule, to be recorded with the next.
    fn stage(&mut self, entries: &[NewEntry]) -> Result<(), Error> {
        self.run.stage(entries)?;
        // One that is taken from another run is dispatched and ends at once.
        let about: BTreeSet<_> = entries.iter().filter_map(NewEntry::item).collect();
        for item in about {
            let at = self.run.state.graph.position(item).expect("a recorded item is in the plan");
            if self.run.state.items[at].phase != Phase::Running {
                self.schedule.ended(&self.run.state, at);
            }
        }
        Ok(())
    }

    /// Records entries, behind what is staged.
    fn record(&mut self, entries: &[NewEntry]) -> Result<(), Error> {
        let started = Instant::now();
        let recorded = self.stage(entries).and_then(|()| Ok(self.run.publish()?));
        let ended = std::mem::take(&mut self.ended);
        self.dispose(ended, recorded.is_ok(), true);
        let links = recorded?;
        if !links.is_empty() {
            self.append = started.elapsed();
        }
        links.iter().for_each(|link| (self.tell)(Progress::Recorded(link, &self.run.state)));
        self.catch_up()
    }

    /// Starts over from the state after others appended, and ends the attempts that it no longer has.
    fn catch_up(&mut self) -> Result<(), Error> {
        if self.generation == self.run.generation() {
            return Ok(());
        }
        self.generation = self.run.generation();
        // What waits for others is decided about anew.
        self.queued.clear();
        let alive = self.running.keys().copied().collect();
        self.schedule = Schedule::new(&self.run.state, &alive, self.now());
        for (at, running) in &self.running {
            let state = &self.run.state.items[*at];
            if state.phase != Phase::Running || state.attempts != running.attempt {
                running.cancel.send_replace(true);
            }
        }
        self.sweep()
    }

    /// Records as skipped what waits for a lost item because two hands appended without seeing each other.
    fn sweep(&mut self) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.sweep(&self.run.state);
        self.record(&batch.entries)
    }

    fn now(&self) -> Moment {
        moment(self.run.writer().clock, &self.steady)
    }

    fn until(&self, due: Moment) -> Duration {
        let wait = due.millis().saturating_sub(self.now().millis());
        Duration::from_millis(u64::try_from(wait).unwrap_or(0))
    }
}

/// Returns the moment to decide by: under a pinned clock no wait would ever end, so none is kept.
fn moment(clock: Clock, steady: &Steady) -> Moment {
    if clock.is_pinned() { Moment::from_millis(i64::MAX) } else { steady.now() }
}

/// What can go wrong while a run is driven.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Hold(#[from] hold::Error),
    #[error(transparent)]
    Claims(#[from] claims::Error),
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Coordinate(#[from] coordinate::Error),
    #[error("the stale lock of the run's ref could not be removed")]
    StaleLock(#[source] std::io::Error),
    #[error("what an interrupted attempt left behind could not be cleared away")]
    Workspace(#[from] workspace::Error),
    #[error("the work of an interrupted attempt could not be saved")]
    Salvage(#[source] Box<capture::Error>),
    #[error("work that could not be saved could not be put aside")]
    Aside(#[source] std::io::Error),
    #[error("the transcript or the salvaged work of an attempt could not be kept")]
    Keep(#[from] retain::Error),
    #[error("{0}")]
    NoSpace(String),
    #[error("nothing is left to run, yet the run has not settled; this is a defect of git-handoff")]
    Stuck,
}
