//! The beats of this driver: a thread that tells the other drivers of a shared run that it lives.
//!
//! Beats have a ref of their own, so that a driver that keeps losing the race for the chain still
//! beats.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clock::since_boot;
use crate::git::store::KeepGuard;
use crate::git::tip::{Move, Swap, Tip};
use crate::git::{passing, remote};
use crate::ledger::beat;
use crate::ledger::chain::Writer;
use crate::model::beat::{Beat, Declined, Waits};
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::driver::DriverId;
use crate::model::format;
use crate::model::name::{ItemId, RunId};

use super::identity::Identity;

/// The subject of beats.
#[derive(Clone)]
pub(super) struct Pulse {
    pub(super) tip: Tip,
    pub(super) writer: Writer,
    pub(super) run: RunId,
    /// The leaf hash of entry 0.
    pub(super) first: Digest,
    pub(super) identity: Identity,
    pub(super) heartbeat: Duration,
    /// The file that shows the supervisors of attempts when the remote last accepted something.
    pub(super) alive: PathBuf,
    /// Whether this driver drives the run without sharing it.
    pub(super) alone: bool,
}

/// The beating thread.
pub(super) struct Beats {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    alive: PathBuf,
}

#[derive(Default)]
struct Shared {
    status: Mutex<Status>,
    changed: Condvar,
}

/// The state of the driver for its next beats.
#[derive(Clone, Default)]
pub(super) struct News {
    /// The number of free slots.
    pub(super) free: u64,
    /// The items that run.
    pub(super) holds: Vec<ItemId>,
    /// The items that are claimed and do not run.
    pub(super) claims: Vec<ItemId>,
    /// The time of a push or of a read, whichever is longer.
    pub(super) push: Duration,
    /// The number of results that could not be pushed yet, and since when there is something to
    /// push.
    pub(super) waits: Option<(u64, Instant)>,
}

/// The state that the thread and the driver share.
#[derive(Default)]
struct Status {
    /// The number of accepted beats.
    accepted: u64,
    /// When the last accepted beat was sent, since boot.
    sent: Option<Duration>,
    /// How long the push of the last accepted beat took.
    took: Duration,
    /// When the beat was sent that waits for an answer, since boot.
    pending: Option<Duration>,
    /// The time between two beats.
    heartbeat: Duration,
    /// Whether a beat is wanted at once.
    is_due: bool,
    /// Refs that are to be removed.
    removals: Vec<Move>,
    is_over: bool,
    news: News,
    declines: Vec<Declined>,
    /// Whether the last beat stays on the remote in the end.
    is_left: bool,
    /// Why the last beat was not accepted.
    failure: Option<String>,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beats {
    /// Sends the first beat, which proves that this driver may write, and starts the thread.
    pub(super) fn start(pulse: Pulse) -> Result<Self, String> {
        let shared = Arc::new(Shared::default());
        shared.status().heartbeat = pulse.heartbeat;
        let alive = pulse.alive.clone();
        let mut heart =
            Heart { pulse, shared: Arc::clone(&shared), last: None, guard: None, number: 0, is_unsure: false };
        heart.beat();
        if let Some(why) = shared.status().failure.take() {
            return Err(why);
        }
        let thread = thread::Builder::new().name("beats".into()).spawn(move || heart.live());
        Ok(Self { shared, thread: Some(thread.map_err(|error| error.to_string())?), alive })
    }

    /// Returns the number of accepted beats.
    pub(super) fn accepted(&self) -> u64 {
        self.shared.status().accepted
    }

    /// Returns how long a push takes: that of the last beat, or the one that still waits for its
    /// answer if that is longer.
    pub(super) fn push_time(&self) -> Duration {
        let status = self.shared.status();
        let pending = status.pending.map_or(Duration::ZERO, |sent| since_boot().saturating_sub(sent));
        status.took.max(pending)
    }

    /// Returns why the last beat was not accepted, if it was not.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.status().failure.clone()
    }

    /// Returns the file that shows when the remote last accepted something.
    pub(super) fn alive(&self) -> &Path {
        &self.alive
    }

    /// Sets the time between two beats.
    pub(super) fn set_heartbeat(&self, heartbeat: Duration) {
        self.shared.status().heartbeat = heartbeat;
        self.shared.changed.notify_all();
    }

    /// Sets what the next beats say.
    pub(super) fn set(&self, news: News) {
        self.shared.status().news = news;
    }

    /// Beats at once, without waiting for the answer.
    pub(super) fn hurry(&self) {
        self.shared.status().is_due = true;
        self.shared.changed.notify_all();
    }

    /// Removes refs without waiting for the answer. A ref that stays does no harm.
    pub(super) fn remove(&self, removals: Vec<Move>) {
        self.shared.status().removals = removals;
        self.shared.changed.notify_all();
    }

    /// Sets what the next beats say that this machine lacks, with the items that it cannot run.
    pub(super) fn set_declines(&self, declines: Vec<Declined>) {
        self.shared.status().declines = declines;
    }

    /// Records that the remote accepted something that was sent then.
    pub(super) fn note_accepted(&self, sent: Duration) {
        if self.shared.status().sent.is_none_or(|beaten| beaten < sent) {
            mark(&self.alive, sent);
        }
    }

    /// Beats at once, and waits until the remote accepted the beat. Returns false after the time
    /// limit.
    pub(super) fn beat_now(&self, within: Duration) -> bool {
        let (begun, until) = (since_boot(), Instant::now() + within);
        let mut status = self.shared.status();
        status.is_due = true;
        self.shared.changed.notify_all();
        while status.sent.is_none_or(|sent| sent < begun) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            status = self.shared.changed.wait_timeout(status, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Stops, and leaves the last beat on the remote.
    pub(super) fn leave(mut self) {
        self.shared.status().is_left = true;
        self.stop();
    }

    /// Stops, and deletes the beat from the remote if that is allowed.
    pub(super) fn stop(&mut self) {
        self.shared.status().is_over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has stopped.
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.alive);
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Why a beat was not accepted although the remote answered.
const MOVED: &str = "another process moved the ref of its beats";

/// The state of the thread.
struct Heart {
    pulse: Pulse,
    shared: Arc<Shared>,
    /// The last value of our ref.
    last: Option<Oid>,
    guard: Option<KeepGuard>,
    number: u64,
    /// Whether the remote's value must be read first. It has no ref for a new id.
    is_unsure: bool,
}

impl Heart {
    fn live(mut self) {
        loop {
            let mut status = self.shared.status();
            let until = Instant::now() + status.heartbeat;
            while !status.is_over && !status.is_due && status.removals.is_empty() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                status = self.shared.changed.wait_timeout(status, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            let is_due = status.is_due || Instant::now() >= until;
            status.is_due = false;
            let is_over = status.is_over;
            drop(status);
            if is_over {
                return self.end();
            }
            if is_due {
                self.beat();
            }
            self.remove();
        }
    }

    fn name(&self) -> String {
        beat_ref(&self.pulse.run, &self.pulse.identity.id)
    }

    /// Sends a beat. A value that another driver put there is built upon.
    fn beat(&mut self) {
        for _ in 0..2 {
            let sent = since_boot();
            self.shared.status().pending = Some(sent);
            let answer = self.try_beat();
            self.shared.status().pending = None;
            let why = match answer {
                Ok(Swap::Won) => {
                    mark(&self.pulse.alive, sent);
                    let mut status = self.shared.status();
                    status.accepted += 1;
                    status.sent = Some(sent);
                    status.took = since_boot().saturating_sub(sent);
                    status.failure = None;
                    self.shared.changed.notify_all();
                    return;
                }
                Ok(Swap::Lost) => MOVED.to_owned(),
                Ok(Swap::Locked(why) | Swap::Refused(why) | Swap::Unknown(why)) | Err(why) => why,
            };
            self.is_unsure = true;
            self.shared.status().failure = Some(why);
        }
    }

    fn try_beat(&mut self) -> Result<Swap, String> {
        let name = self.name();
        if std::mem::take(&mut self.is_unsure) {
            let there = self.pulse.tip.list(&[&name]).map_err(|error| in_words(&error))?.get(&name).copied();
            if there != self.last
                && let Some(there) = there
            {
                self.guard = match self.pulse.tip.fetch(&[there]) {
                    Ok(guard) => Some(guard),
                    // The next beat is put over what git's checks refuse.
                    Err(remote::Error::Unsound(..)) => None,
                    Err(error) => return Err(in_words(&error)),
                };
            }
            self.last = there;
        }
        let (oid, guard) =
            beat::write(&self.pulse.writer, self.last, &self.message()).map_err(|error| in_words(&*error))?;
        let one = Move { name, old: self.last, new: Some(oid) };
        let answer = self.pulse.tip.swap(&[one]).map_err(|error| in_words(&error))?;
        if answer == Swap::Won {
            (self.last, self.guard, self.number) = (Some(oid), Some(guard), self.number + 1);
        }
        Ok(answer)
    }

    fn message(&self) -> Beat {
        let Pulse { writer, run, first, identity, .. } = &self.pulse;
        let News { free, holds, claims, push, waits } = self.shared.status().news.clone();
        let declines = self.shared.status().declines.clone();
        let at = writer.clock.now();
        Beat {
            beat: Some(self.number + 1),
            host: identity.host.clone(),
            job: identity.job.clone(),
            alone: self.pulse.alone,
            free,
            holds,
            claims,
            push: (!push.is_zero()).then(|| u64::try_from(push.as_millis()).unwrap_or(u64::MAX)),
            waits: waits.map(|(results, since)| Waits {
                results,
                since: at.minus_millis(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)),
            }),
            declines,
            ..Beat::new(run.clone(), *first, identity.id.clone(), at)
        }
    }

    /// Deletes our ref, and what was to be removed later.
    ///
    /// If the remote forbids it, only `clean --remote` removes the beat.
    fn end(&self) {
        self.remove();
        if self.shared.status().is_left {
            return;
        }
        if let Some(last) = self.last {
            let _ = self.pulse.tip.swap(&[Move { name: self.name(), old: Some(last), new: None }]);
        }
    }

    /// Removes the refs that are to be removed, all or none.
    fn remove(&self) {
        let removals = std::mem::take(&mut self.shared.status().removals);
        if !removals.is_empty() {
            let _ = self.pulse.tip.swap(&removals);
        }
    }
}

/// Returns true if the first beat may be accepted soon. Who moved its ref may be an earlier try of
/// this driver, whose answer was lost.
pub(super) fn is_passing(why: &str) -> bool {
    why == MOVED || passing::is_passing(why)
}

/// Returns the ref of a driver's beats.
pub(super) fn beat_ref(run: &RunId, driver: &DriverId) -> String {
    format!("{}{driver}", format::driver_refs(run))
}

/// Writes when the remote last accepted something, for the supervisors of attempts.
fn mark(alive: &Path, sent: Duration) {
    let next = alive.with_extension("next");
    // Without the file, attempts with locks end early, which is safe.
    let _ = std::fs::write(&next, sent.as_millis().to_string()).and_then(|()| std::fs::rename(&next, alive));
}
