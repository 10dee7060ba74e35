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
use crate::model::beat::Beat;
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

/// The state that the thread and the driver share.
#[derive(Default)]
struct Status {
    /// The number of accepted beats.
    accepted: u64,
    /// When the last accepted beat was sent, since boot.
    sent: Option<Duration>,
    /// Whether a beat is wanted at once.
    is_due: bool,
    is_over: bool,
    /// Whether the last beat stays on the remote in the end.
    is_left: bool,
    free: u64,
    holds: Vec<ItemId>,
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
        let alive = pulse.alive.clone();
        let mut heart =
            Heart { pulse, shared: Arc::clone(&shared), last: None, kept: None, number: 0, is_unsure: true };
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

    /// Returns the file that shows when the remote last accepted something.
    pub(super) fn alive(&self) -> &Path {
        &self.alive
    }

    /// Sets what the next beats say.
    pub(super) fn set(&self, free: u64, holds: Vec<ItemId>) {
        let mut status = self.shared.status();
        (status.free, status.holds) = (free, holds);
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
        let (wanted, until) = (since_boot(), Instant::now() + within);
        let mut status = self.shared.status();
        status.is_due = true;
        self.shared.changed.notify_all();
        while status.sent.is_none_or(|sent| sent < wanted) {
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
    kept: Option<KeepGuard>,
    number: u64,
    /// Whether the remote's value must be read first.
    is_unsure: bool,
}

impl Heart {
    fn live(mut self) {
        loop {
            let mut status = self.shared.status();
            let until = Instant::now() + self.pulse.heartbeat;
            while !status.is_over && !status.is_due {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                status = self.shared.changed.wait_timeout(status, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            status.is_due = false;
            let is_over = status.is_over;
            drop(status);
            if is_over {
                return self.end();
            }
            self.beat();
        }
    }

    fn name(&self) -> String {
        beat_ref(&self.pulse.run, &self.pulse.identity.id)
    }

    /// Sends a beat. A value that another driver put there is built upon.
    fn beat(&mut self) {
        for _ in 0..2 {
            let sent = since_boot();
            let why = match self.try_beat() {
                Ok(Swap::Won) => {
                    mark(&self.pulse.alive, sent);
                    let mut status = self.shared.status();
                    status.accepted += 1;
                    status.sent = Some(sent);
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
                self.kept = match self.pulse.tip.fetch(&[there]) {
                    Ok(kept) => Some(kept),
                    // The next beat is put over what git's checks refuse.
                    Err(remote::Error::Unsound(..)) => None,
                    Err(error) => return Err(in_words(&error)),
                };
            }
            self.last = there;
        }
        let (oid, kept) =
            beat::write(&self.pulse.writer, self.last, &self.message()).map_err(|error| in_words(&error))?;
        let one = Move { name, old: self.last, new: Some(oid) };
        let answer = self.pulse.tip.swap(&[one]).map_err(|error| in_words(&error))?;
        if answer == Swap::Won {
            (self.last, self.kept, self.number) = (Some(oid), Some(kept), self.number + 1);
        }
        Ok(answer)
    }

    fn message(&self) -> Beat {
        let Pulse { writer, run, first, identity, .. } = &self.pulse;
        let status = self.shared.status();
        Beat {
            beat: Some(self.number + 1),
            host: identity.host.clone(),
            job: identity.job.clone(),
            alone: self.pulse.alone,
            free: status.free,
            holds: status.holds.clone(),
            ..Beat::new(run.clone(), *first, identity.id.clone(), writer.clock.now())
        }
    }

    /// Deletes our ref. A remote that forbids it keeps a beat that only `clean --remote` removes.
    fn end(&self) {
        if self.shared.status().is_left {
            return;
        }
        if let Some(last) = self.last {
            let _ = self.pulse.tip.swap(&[Move { name: self.name(), old: Some(last), new: None }]);
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
