//! An open run: its state, and the only way to record entries on it.

mod cut;
mod error;
mod lone;
mod push;
mod recover;
mod refused;
mod remote;
mod seal;

use std::collections::BTreeSet;

use crate::git::retry::{Lost as _, Retry};
use crate::git::store::Store;
use crate::git::tip::Move;
use crate::ledger::chain::{self, Draft, Head, Link, Writer};
use crate::ledger::merkle::Frontier;
use crate::model::digest::Digest;
use crate::model::entry::{Event, RunEnded};
use crate::model::format;
use crate::model::name::RunId;
use crate::model::state::RunState;
use crate::run::query::{self, view};
use crate::verify::{Chain, check_incoming};

use super::new_entry::NewEntry;
use super::submit;

pub use error::Error;
pub use lone::LoneDriver;

/// A run on which entries can be recorded.
pub struct OpenRun {
    run: RunId,
    writer: Writer,
    head: Head,
    frontier: Frontier,
    /// The leaf hash of entry 0.
    first: Digest,
    /// Entries that the state already includes and the chain does not.
    staged: Staged,
    /// Results that could not be recorded, for [`OpenRun::recover`].
    unrecorded: Vec<NewEntry>,
    /// Keys from which nothing more is taken.
    revoked: BTreeSet<String>,
    generation: u64,
    /// Counts the races lost since the last recording.
    race: Retry,
    /// The remote of a shared run.
    shared: Option<Box<remote::Shared>>,
    /// The state after all entries, including staged ones.
    pub state: RunState,
}

/// A run as it was read or verified.
pub(super) struct Loaded {
    pub(super) run: RunId,
    pub(super) first: Digest,
    pub(super) head: Head,
    pub(super) frontier: Frontier,
    pub(super) state: RunState,
}

/// Entries to record with the next swap of the ref, and their drafts.
#[derive(Default)]
struct Staged {
    entries: Vec<NewEntry>,
    drafts: Vec<Draft>,
}

/// Which entries are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applying {
    /// All; an illegal one is an error.
    All,
    /// The legal ones.
    Legal,
    /// The legal ones that are kept after a lost race.
    Kept,
}

impl OpenRun {
    /// Opens a run without verifying it.
    ///
    /// The caller has verified the chain and knows that the writer's key can append.
    pub(super) fn unverified(writer: Writer, run: &RunId) -> Result<Self, Error> {
        let view =
            view(&writer.store, run, &format::run_ref(run))?.ok_or_else(|| query::Error::Unknown(run.clone()))?;
        let frontier = frontier(&view.links);
        let first = view.links[0].hash;
        Ok(Self::new(writer, Loaded { run: view.run, first, head: view.head, frontier, state: view.state }))
    }

    pub(super) fn new(writer: Writer, loaded: Loaded) -> Self {
        let Loaded { run, first, head, frontier, state } = loaded;
        let (staged, race) = (Staged::default(), Retry::default());
        let (unrecorded, revoked) = (Vec::new(), BTreeSet::new());
        Self {
            run,
            writer,
            head,
            frontier,
            first,
            staged,
            unrecorded,
            revoked,
            generation: 0,
            race,
            shared: None,
            state,
        }
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &RunId {
        &self.run
    }

    /// Returns the store that holds the run.
    pub fn store(&self) -> &Store {
        &self.writer.store
    }

    /// Returns the writer.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the end of the chain.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the leaf hash of entry 0, which identifies the run.
    pub fn first(&self) -> Digest {
        self.first
    }

    /// Returns how often the state was reloaded because other writers appended.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Adds the refs and the log entry that a crash after submit left out.
    pub fn mend(&self) -> Result<(), Error> {
        Ok(submit::register(&self.writer, &self.run, self.state.submitted.base, self.first)?)
    }

    /// Records the staged entries, and reloads the state if other writers appended. Returns true if
    /// it was reloaded.
    pub fn refresh(&mut self) -> Result<bool, Error> {
        let generation = self.generation;
        self.publish()?;
        if self.shared.is_some() {
            self.read_remote()?;
        } else {
            self.follow_ref()?;
        }
        Ok(self.generation != generation)
    }

    /// Reloads the state after other writers appended, or after a failure.
    ///
    /// The ref must continue the chain that was opened, with entries that their signers could
    /// append.
    fn reload(&mut self) -> Result<(), Error> {
        if self.shared.is_some() {
            return self.reload_shared();
        }
        let view = view(&self.writer.store, &self.run, &format::run_ref(&self.run))?;
        let view = view.ok_or_else(|| query::Error::Unknown(self.run.clone()))?;
        let known = usize::try_from(self.head.entries).expect("a chain in memory has a length that fits");
        if known == 0 || view.links.get(known - 1).map(|link| link.commit) != self.head.commit {
            return Err(Error::Rewritten(self.run.clone()));
        }
        let tip = self.head.commit.zip(view.head.commit);
        if let Some((old, tip)) = tip.filter(|(old, tip)| old != tip) {
            let received = check_incoming(&self.writer.store, Chain::Run(&self.run), Some(old), tip);
            received.map_err(|why| Error::Stranger(self.run.clone(), why))?;
        }
        (self.frontier, self.head, self.state) = (frontier(&view.links), view.head, view.state);
        self.generation += 1;
        Ok(())
    }

    /// Records entries in order, together with the staged ones, with one swap of the ref. Returns
    /// all of them.
    ///
    /// If another writer appended first, the state is reloaded and the entries are tried again.
    /// Those that the new state no longer allows are left out, such as the end of an attempt that
    /// was cancelled meanwhile. After an error the state matches the ref, and nothing is staged.
    pub fn record(&mut self, entries: &[NewEntry]) -> Result<Vec<Link>, Error> {
        self.stage(entries)?;
        self.publish()
    }

    /// Applies entries to the state, to be recorded by the next [`OpenRun::record`] with a single
    /// swap. Until then they are not visible, and a crash loses them. After an error the state
    /// matches the ref, and nothing is staged.
    pub fn stage(&mut self, entries: &[NewEntry]) -> Result<(), Error> {
        let how = if self.driver().is_some() { Applying::Legal } else { Applying::All };
        self.apply(entries, how).or_else(|error| self.drop_staged().and(Err(error)))
    }

    /// Returns true if there are staged entries.
    pub fn has_staged(&self) -> bool {
        !self.staged.entries.is_empty()
    }

    /// Records the staged entries.
    pub fn publish(&mut self) -> Result<Vec<Link>, Error> {
        if !self.has_staged() {
            return Ok(Vec::new());
        }
        loop {
            let entries = std::mem::take(&mut self.staged.entries);
            match self.publish_once(&[]) {
                Ok(Some(links)) => return Ok(links),
                Ok(None) => {
                    self.apply(&entries, Applying::Kept).or_else(|error| self.drop_staged().and(Err(error)))?;
                    if self.driver().is_some() {
                        return Err(Error::Raced);
                    }
                }
                Err(Error::PushRefused { remote, why }) if entries.len() > 1 => {
                    return self.publish_each(&entries, remote, why);
                }
                Err(error) => {
                    // Results wait for the remote.
                    if error.is_of_remote() {
                        self.apply(&entries, Applying::Kept)?;
                    } else {
                        self.keep_unrecorded(entries);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Records the staged entries, then entries that depend on the exact current state. If another
    /// writer appended first, none of the latter are recorded, the state is reloaded, and this
    /// returns `None`. After an error the state matches the ref.
    pub fn propose(&mut self, entries: &[NewEntry]) -> Result<Option<Vec<Link>>, Error> {
        let generation = self.generation;
        self.publish()?;
        if self.generation != generation {
            return Ok(None);
        }
        self.stage(entries)?;
        self.publish_unless_raced()
    }

    /// Records the staged entries. If another writer appended first, they are dropped, the state is
    /// reloaded, and this returns `None`.
    pub fn publish_unless_raced(&mut self) -> Result<Option<Vec<Link>>, Error> {
        self.publish_with(&[])
    }

    /// Records the staged entries like [`OpenRun::publish_unless_raced`], and moves further refs of
    /// the remote of a shared run in the same push.
    pub fn publish_with(&mut self, more: &[Move]) -> Result<Option<Vec<Link>>, Error> {
        if !self.has_staged() {
            return Ok(Some(Vec::new()));
        }
        let entries = self.staged.entries.clone();
        let published = self.publish_once(more);
        if published.as_ref().is_err_and(|error| !error.is_of_remote()) {
            self.keep_unrecorded(entries);
        }
        published
    }

    /// Records the staged entries with one swap. Returns `None` if another writer appended first
    /// and another try is due. After that, or an error, the state matches the ref, and nothing is
    /// staged.
    fn publish_once(&mut self, more: &[Move]) -> Result<Option<Vec<Link>>, Error> {
        let drafts = std::mem::take(&mut self.staged).drafts;
        if self.shared.is_some() {
            return self.push_drafts(drafts, more);
        }
        let published = self.writer.append(&self.head, drafts).and_then(chain::Appended::publish);
        match published {
            Ok((head, links)) => {
                self.head = head;
                links.iter().for_each(|link| self.frontier.push(link.hash));
                self.race = Retry::default();
                Ok(Some(links))
            }
            Err(error) => {
                // This reads the ref after the pause, so that the next try sees the latest entries.
                let again = error.is_lost() && self.race.again();
                self.reload()?;
                if again { Ok(None) } else { Err(error.into()) }
            }
        }
    }

    /// Applies entries to the state, and stages them.
    fn apply(&mut self, entries: &[NewEntry], how: Applying) -> Result<(), Error> {
        for new in entries {
            // A dispatch may be bound to a revision that is no longer the highest.
            if how == Applying::Kept && !(new.is_bound(&self.state) && self.survives(new)) {
                continue;
            }
            let key = self.writer.signer.fingerprint();
            if let Some(why) = new.refused(&self.state.keys, &key) {
                return Err(Error::Role { run: self.run.clone(), key, why });
            }
            match new.apply(&mut self.state, &key) {
                Ok(()) => {
                    let (about, event) = (self.run.clone().into(), new.event.clone());
                    self.staged.drafts.push(Draft { about, event, bytes: new.bytes.clone(), edits: Vec::new() });
                    self.staged.entries.push(new.clone());
                }
                Err(why) if how == Applying::All => return Err(Error::Illegal(why)),
                // It was decided by an older state, so its decider has to look again.
                Err(_) => self.generation += 1,
            }
        }
        Ok(())
    }

    /// Drops the staged entries, and reloads the state.
    pub fn drop_staged(&mut self) -> Result<(), Error> {
        if self.shared.is_some() {
            self.unstage();
            return Ok(());
        }
        self.staged = Staged::default();
        self.reload()
    }
}

fn frontier(links: &[Link]) -> Frontier {
    let mut frontier = Frontier::default();
    links.iter().for_each(|link| frontier.push(link.hash));
    frontier
}

/// Returns the event that closes a run.
pub fn closed(reason: &str) -> Event {
    Event::RunClosed(RunEnded::new(reason))
}
