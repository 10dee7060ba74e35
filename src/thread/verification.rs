//! Verification of threads against everything in the repository.

use std::collections::BTreeSet;

use crate::model::any_error::AnyError;
use crate::model::format;
use crate::model::name::ThreadId;
use crate::model::place::{Kind, Place};
use crate::repository::remote_record::{self, Vanished};
use crate::repository::{Repository, Trust, trust};
use crate::verify::{self, Asking, Logs, Options, ThreadReport, ThreadsAtHand, no_place, thread as verify_thread};

use super::target::ThreadTarget;
use super::{fetched_threads, own_threads};

/// A selection of threads to verify.
#[derive(Clone, Copy)]
pub enum Which<'a> {
    /// All, including fetched ones.
    All,
    /// Named threads. A missing ref is reported if a log names the thread.
    Named(&'a [String]),
}

/// Threads to verify.
pub struct ThreadsToVerify<'r> {
    repository: &'r Repository,
    options: Options,
    logs: Logs,
    /// The threads with their refs.
    targets: Vec<(ThreadId, String)>,
    /// Asks the anchors about a thread; by default, no anchor is asked.
    pub ask: Asking<'r>,
    /// For all threads: those that a remote once showed and that are now missing.
    pub vanished: Vec<Vanished>,
}

impl Repository {
    /// Prepares the verification; calls `warn` for ignored files.
    pub fn verify_threads(
        &self,
        which: Which<'_>,
        trust: &Trust<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<ThreadsToVerify<'_>, AnyError> {
        let options = self.options(trust, warn).map_err(Error::Trust)?;
        let logs = Logs::read(&self.store)?;
        let mut vanished = Vec::new();
        let targets = match which {
            Which::All => {
                vanished = remote_record::vanished(&self.store, &logs)?;
                vanished.retain(|vanished| vanished.place.kind == Kind::Thread && vanished.is_missed());
                let mut threads: BTreeSet<ThreadId> = own_threads(&self.store)?.into_iter().collect();
                // A thread that our log names and that is gone is reported like a run.
                let logged = logs.recorded_places(format::REFS).into_keys().filter(|place| place.kind == Kind::Thread);
                threads.extend(logged.filter_map(|place| ThreadId::parse(&place.name).ok()));
                threads.into_iter().map(own).chain(fetched_threads(&self.store)?).collect()
            }
            Which::Named(names) => {
                let results = names.iter().map(|name| {
                    ThreadTarget::find(&self.store, name).map(|target| (target.thread, target.reference)).or_else(
                        |unknown| {
                            ThreadId::parse(name).map(own).ok().or_else(|| fetched_thread(name, &logs)).ok_or(unknown)
                        },
                    )
                });
                results.collect::<Result<_, _>>()?
            }
        };
        Ok(ThreadsToVerify { repository: self, options, logs, targets, ask: Box::new(no_place), vanished })
    }
}

fn fetched_thread(name: &str, logs: &Logs) -> Option<(ThreadId, String)> {
    let (remote, id) = name.rsplit_once('/')?;
    let thread = ThreadId::parse(id).ok()?;
    let reference = logs.fetched_place(remote, &Place::of_thread(&thread))?;
    Some((thread, reference))
}

/// Returns a thread with its own ref.
fn own(thread: ThreadId) -> (ThreadId, String) {
    let reference = format::thread_ref(&thread);
    (thread, reference)
}

impl ThreadsToVerify<'_> {
    /// Returns true if there are no threads to verify.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns true if the thread at this ref is to be verified.
    pub fn has(&self, reference: &str) -> bool {
        self.targets.iter().any(|(_, target)| target == reference)
    }

    /// Returns the logs of this repository.
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    /// Verifies the threads one by one. When verifying all, an error of one does not end the
    /// others.
    pub fn reports(&self) -> impl Iterator<Item = Result<ThreadReport, AnyError>> {
        self.targets.iter().map(|(thread, reference)| self.report(thread, reference))
    }

    fn report(&self, thread: &ThreadId, reference: &str) -> Result<ThreadReport, AnyError> {
        let store = &self.repository.store;
        let at_hand = ThreadsAtHand { logs: &self.logs, ask: &*self.ask };
        match verify_thread(store, at_hand, thread, reference, &self.options) {
            Err(gone @ verify::Error::NoSuchRun(_)) => {
                // A similar name helps more than the name of a ref.
                ThreadTarget::find(store, thread.as_str())?;
                Err(gone.into())
            }
            other => Ok(other?),
        }
    }
}

errors! {
    /// An error while verifying threads.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    #[from] Trust(trust::Error);
}
