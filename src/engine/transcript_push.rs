//! Pushes the transcripts of a shared run to its remote: a thread beside the driver.
//!
//! The remote has one tree for the transcripts of all drivers. Each driver adds its own paths, and
//! moves the ref by compare-and-swap. An attempt has one holder, so paths never clash. A failure is
//! a warning: no result waits for transcripts.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gix::objs::Kind;

use crate::git::quarantine::Quarantine;
use crate::git::retry::Retry;
use crate::git::secret_scan::{self, Range};
use crate::git::store::{self, Durability, Store};
use crate::git::tip::{Move, Swap, Tip};
use crate::git::{passing, program, refs, remote, tree};
use crate::model::any_error::AnyError;
use crate::model::causes::in_words;
use crate::model::credential::gate::Gate;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::printable;

/// The longest time between two pushes, and for the tries of the last one.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// How often to try in the end at least, while other drivers are first.
const LAST_TRIES: u32 = 5;

/// The pause before the last push is tried again at a remote that is busy.
const PAUSE: Duration = Duration::from_secs(1);

/// The share of the time that pushes may take: a slow remote gets fewer.
const REST: u32 = 4;

/// The transcripts to push, and their remote.
pub(super) struct Upload {
    pub(super) tip: Tip,
    pub(super) store: Store,
    pub(super) run: RunId,
    /// The check for credentials.
    pub(super) gate: Gate,
    /// The time between two pushes.
    pub(super) interval: Duration,
}

/// The pushing thread. It ends with a last push when this is dropped.
pub(super) struct TranscriptPush {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    warnings: Receiver<String>,
}

impl TranscriptPush {
    /// Starts the thread.
    pub(super) fn start(upload: Upload) -> Self {
        let (over, is_over) = mpsc::channel();
        let (warn, warnings) = mpsc::channel();
        let pusher = Pusher { upload, pushed: None, warn: warn.clone(), causes: BTreeSet::new() };
        let thread = thread::Builder::new().name("transcripts".into()).spawn(move || pusher.live(&is_over));
        let thread = thread.map_err(|error| warn.send(format!("warning: transcripts are not pushed: {error}"))).ok();
        Self { over: Some(over), thread, warnings }
    }

    /// Returns the warnings since the last call.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.warnings.try_iter()
    }

    /// Makes the last push, and waits for it.
    pub(super) fn finish(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended.
            let _ = thread.join();
        }
    }
}

impl Drop for TranscriptPush {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The state of the thread.
struct Pusher {
    upload: Upload,
    /// The value of our ref when the remote had all of it.
    pushed: Option<Oid>,
    warn: Sender<String>,
    /// The causes that were reported.
    causes: BTreeSet<String>,
}

impl Pusher {
    fn live(mut self, is_over: &Receiver<()>) {
        let mut pause = self.upload.interval;
        while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let began = Instant::now();
            self.push_patiently(false);
            pause = self.upload.interval.max(began.elapsed() * REST);
        }
        self.push_patiently(true);
    }

    /// Pushes, and tries again while other drivers are first. Another push follows, unless this is
    /// the last.
    fn push_patiently(&mut self, is_last: bool) {
        let limit = if is_last { LONGEST } else { self.upload.interval };
        let (began, mut race) = (Instant::now(), Retry::default());
        for tries in 1.. {
            let is_enough = began.elapsed() >= limit && (!is_last || tries >= LAST_TRIES);
            let Err(error) = self.push(is_last) else { return };
            let is_lost = matches!(error.downcast_ref(), Some(Error::Lost(_)));
            if is_lost && !is_enough && race.again() {
                continue;
            }
            let is_passing = error.is::<remote::Error>() && passing::is_passing(&in_words(&*error));
            if is_lost && !is_last {
                return;
            }
            if !(is_passing && is_last && !is_enough) {
                return self.report(&error);
            }
            thread::sleep(PAUSE);
        }
    }

    /// Reports each cause once.
    fn report(&mut self, error: &AnyError) {
        let why = printable::line(&in_words(&**error));
        if self.causes.insert(why.clone()) {
            let (run, remote) = (self.upload.run.as_str(), self.upload.tip.remote());
            let remote = remote::without_password(remote);
            // The driver that reads this may be gone.
            let _ = self.warn.send(format!(
                "warning: cannot push the transcripts of {run} to {remote}: {why}; they stay in this clone"
            ));
        }
    }

    /// Adds our transcripts to those of the remote, if it lacks any.
    fn push(&mut self, is_last: bool) -> Result<(), AnyError> {
        let Upload { tip, store, run, gate, .. } = &self.upload;
        let name = format::transcripts_ref(run);
        let Some(ours) = refs::read_stored(store, &name)? else { return Ok(()) };
        if self.pushed == Some(ours) && !is_last {
            return Ok(());
        }
        let old = tip.list(&[&name])?.get(&name).copied();
        let quarantine = Quarantine::new(store)?;
        let new = unite(tip, &quarantine, old, ours)?;
        if old != Some(new) {
            let known = old.iter().filter(|old| quarantine.store().contains(**old)).map(Oid::to_string).collect();
            let range = Range { tips: vec![new], known };
            let secret = secret_scan::new_objects(&|| quarantine.store().git(), &range, gate).map_err(Error::Git)?;
            let secret = secret.into_iter().next();
            secret.map_or(Ok(()), |(_, secret)| Err(secret))?;
            match tip.swap_from(&quarantine, &Move { name, old, new: Some(new) })? {
                Swap::Won => {}
                Swap::Lost => return Err(Error::Lost("other drivers were always first".to_owned()).into()),
                Swap::Locked(why) | Swap::Unknown(why) => return Err(Error::Lost(why).into()),
                Swap::Refused(why) => return Err(Error::Refused(why).into()),
            }
        }
        self.pushed = Some(ours);
        Ok(())
    }
}

/// Writes the remote's tree with our files in it to the quarantine. Fetches only folders that are
/// not here.
///
/// An object of another kind holds no transcripts, and gives way.
fn unite(tip: &Tip, quarantine: &Quarantine, theirs: Option<Oid>, ours: Oid) -> Result<Oid, AnyError> {
    let store = quarantine.store().clone().with_durability(Durability::Relaxed);
    let write = || -> Result<Oid, AnyError> {
        let base = match theirs {
            Some(theirs) if store.kind(theirs)?.ok_or(store::Error::Missing(theirs))? == Kind::Tree => Some(theirs),
            _ => None,
        };
        let mut batch = store.batch();
        let tree = tree::with_files_of(&store, base, ours, &mut batch)?;
        // The quarantine is ours alone, so nothing in it is pruned.
        drop(batch.keep()?);
        Ok(tree)
    };
    match (write(), theirs) {
        (Err(_), Some(theirs)) => {
            tip.fetch_tree(quarantine, theirs)?;
            write()
        }
        (written, _) => written,
    }
}

errors! {
    /// Why transcripts were not pushed.
    #[derive(Debug, thiserror::Error)] enum Error;
    Lost(String): "{0}";
    Refused(String): "{0}";
    Git(#[source] program::Error): "cannot search for credentials";
}
