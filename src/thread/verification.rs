//! Threads, verified with everything that is in the repository.

use std::collections::BTreeSet;

use crate::model::format;
use crate::model::name::ThreadId;
use crate::model::place::{Kind, Place};
use crate::repository::shown::{self, Vanished};
use crate::repository::{Repository, Trust, trust};
use crate::verify::{self, Logs, Options, ThreadReport, ThreadWitness, ThreadsAtHand, thread as verify_thread};

use super::target::{self, ThreadTarget};
use super::{fetched_threads, own_threads};

/// Which threads are to be verified.
#[derive(Clone, Copy)]
pub enum Which<'a> {
    /// All of this repository, and all that were fetched.
    All,
    /// Those of some names. One whose ref is gone may still be one that a log names.
    Named(&'a [String]),
}

/// Threads that are to be verified.
pub struct ThreadsToVerify<'r> {
    repository: &'r Repository,
    options: Options,
    logs: Logs,
    /// Each with its ref.
    targets: Vec<(ThreadId, String)>,
    /// What places outside hold; nobody is asked here.
    pub outside: Vec<ThreadWitness>,
    /// Where all were asked for, those that a remote showed once, and that are neither there nor here.
    pub missed: Vec<Vanished>,
}

impl Repository {
    /// Begins to verify threads; `warn` is told of files that are ignored.
    pub fn verify_threads(
        &self,
        which: Which<'_>,
        trust: &Trust<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<ThreadsToVerify<'_>, Error> {
        let options = self.options(trust, warn)?;
        let find = |name: &str| ThreadTarget::find(&self.store, name).map(|target| (target.thread, target.reference));
        let logs = Logs::read(&self.store)?;
        let fetched = |name: &str| {
            let (remote, id) = name.rsplit_once('/')?;
            let thread = ThreadId::parse(id).ok()?;
            let reference = logs.fetched_place(remote, &Place::of_thread(&thread))?;
            Some((thread, reference))
        };
        let gone = |name: &str| ThreadId::parse(name).map(own).ok().or_else(|| fetched(name));
        let mut missed = Vec::new();
        let targets = match which {
            Which::All => {
                missed = shown::vanished(&self.store, &logs)?;
                missed.retain(|vanished| vanished.place.kind == Kind::Thread && vanished.is_missed());
                let mut threads: BTreeSet<ThreadId> = own_threads(&self.store)?.into_iter().collect();
                // One that a log of ours names and that is gone is missed like a run.
                let named = logs.named(format::REFS).into_keys().filter(|place| place.kind == Kind::Thread);
                threads.extend(named.filter_map(|place| ThreadId::parse(&place.name).ok()));
                threads.into_iter().map(own).chain(fetched_threads(&self.store)?).collect()
            }
            Which::Named(names) => {
                let named = names.iter().map(|name| find(name).or_else(|unknown| gone(name).ok_or(unknown)));
                named.collect::<Result<_, _>>()?
            }
        };
        Ok(ThreadsToVerify { repository: self, options, logs, targets, outside: Vec::new(), missed })
    }
}

/// Returns a thread with the ref that is its own.
fn own(thread: ThreadId) -> (ThreadId, String) {
    let reference = format::thread_ref(&thread);
    (thread, reference)
}

impl ThreadsToVerify<'_> {
    /// Returns whether there is none, and none that is missed.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.missed.is_empty()
    }

    /// Returns the keys that the threads belong to.
    pub fn owners(&self) -> BTreeSet<String> {
        verify::owners(&self.repository.store, self.targets.iter().map(|(thread, reference)| (thread, &**reference)))
    }

    /// Verifies one thread after the other. Where all were asked for, an error about one says nothing of the others.
    pub fn reports(&self) -> impl Iterator<Item = Result<ThreadReport, Error>> {
        self.targets.iter().map(|(thread, reference)| self.report(thread, reference))
    }

    fn report(&self, thread: &ThreadId, reference: &str) -> Result<ThreadReport, Error> {
        let store = &self.repository.store;
        let at_hand = ThreadsAtHand { logs: &self.logs, outside: &self.outside };
        match verify_thread(store, at_hand, thread, reference, &self.options) {
            Err(gone @ verify::Error::NoSuchRun(_)) => {
                // A name that is like it is more help than a ref that nobody typed.
                ThreadTarget::find(store, thread.as_str())?;
                Err(gone.into())
            }
            other => Ok(other?),
        }
    }
}

/// Why threads cannot be verified.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Trust(#[from] trust::Error),
    #[error(transparent)]
    Shown(#[from] shown::Error),
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Thread(#[from] super::Error),
    #[error(transparent)]
    Verify(#[from] verify::Error),
}
