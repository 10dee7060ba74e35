//! An open run: its chain folded into its state, and the one way to record what happens next.

mod error;

use std::collections::BTreeMap;

use crate::git::race::{Lost as _, Race};
use crate::git::refs;
use crate::git::store::{Edit, Store};
use crate::ledger::chain::{self, Draft, Head, Link, Writer};
use crate::ledger::log::{self, Record};
use crate::ledger::merkle::Frontier;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, RunEnded, RunSealed};
use crate::model::name::{FilePath, RunId};
use crate::model::state::RunState;
use crate::model::{extension, format};
use crate::verify::{Chain, received};

use super::new_entry::NewEntry;
use super::stops;
use super::submit;
use super::view::view;

pub use error::Error;

/// A run that entries can be recorded on.
pub struct OpenRun {
    run: RunId,
    writer: Writer,
    head: Head,
    frontier: Frontier,
    /// The leaf hash of entry 0.
    first: Digest,
    artifacts: BTreeMap<FilePath, Oid>,
    /// What the state holds already and the chain does not yet.
    staged: Staged,
    generation: u64,
    /// The turns that were lost to others since something was recorded.
    race: Race,
    /// What the entries so far come to.
    pub state: RunState,
}

/// Events that wait for the next swap of the ref, with what becomes of them.
#[derive(Default)]
struct Staged {
    entries: Vec<NewEntry>,
    drafts: Vec<Draft>,
}

impl OpenRun {
    /// Opens a run of this repository for recording.
    ///
    /// The caller has made sure that the chain verifies as far as it goes and that the writer's key may append.
    pub(super) fn unverified(writer: Writer, run: &RunId) -> Result<Self, Error> {
        let view = view(&writer.store, run, &format::run_ref(run))?.ok_or_else(|| Error::Unknown(run.clone()))?;
        let mut artifacts = BTreeMap::new();
        for path in view.plan.artifacts.keys() {
            let oid = writer.store.blob_at(view.links[0].tree, &format::artifact_path(path))?;
            artifacts.insert(path.clone(), oid.ok_or_else(|| Error::Plan(run.clone()))?);
        }
        let now = (view.head, frontier(&view.links), view.state);
        Ok(Self::new(writer, run.clone(), (view.links[0].hash, artifacts), now))
    }

    pub(super) fn new(
        writer: Writer,
        run: RunId,
        (first, artifacts): (Digest, BTreeMap<FilePath, Oid>),
        (head, frontier, state): (Head, Frontier, RunState),
    ) -> Self {
        let (staged, race) = (Staged::default(), Race::default());
        Self { run, writer, head, frontier, first, artifacts, staged, generation: 0, race, state }
    }

    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        &self.run
    }

    /// Returns the store that holds it.
    pub fn store(&self) -> &Store {
        &self.writer.store
    }

    /// Returns who writes.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the end of the chain.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the leaf hash of entry 0, which tells the run from every other.
    pub fn first(&self) -> Digest {
        self.first
    }

    /// Returns how often the state was read anew because others had appended.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the blob of an artifact that was sealed at submit.
    pub fn artifact(&self, path: &FilePath) -> Option<Oid> {
        self.artifacts.get(path).copied()
    }

    /// Puts in place what a crash after submit left out.
    pub fn mend(&self) -> Result<(), Error> {
        Ok(submit::register(&self.writer, &self.run, self.state.submitted.base, self.first)?)
    }

    /// Takes in what others appended, after recording what is staged; returns whether there was anything.
    pub fn refresh(&mut self) -> Result<bool, Error> {
        let generation = self.generation;
        self.publish()?;
        if refs::read(&self.writer.store, &self.head.name)? != self.head.commit {
            self.reload()?;
        }
        Ok(self.generation != generation)
    }

    /// Reads the state anew, after others appended or an attempt to record failed.
    ///
    /// What the ref holds now must continue the chain that was opened, by entries that keys signed which may append them.
    fn reload(&mut self) -> Result<(), Error> {
        let view = view(&self.writer.store, &self.run, &format::run_ref(&self.run))?;
        let view = view.ok_or_else(|| Error::Unknown(self.run.clone()))?;
        let known = usize::try_from(self.head.entries).expect("a chain in memory has a length that fits");
        if known == 0 || view.links.get(known - 1).map(|link| link.commit) != self.head.commit {
            return Err(Error::Rewritten(self.run.clone()));
        }
        let tip = self.head.commit.zip(view.head.commit);
        if let Some((known, tip)) = tip.filter(|(known, tip)| known != tip) {
            let received = received(&self.writer.store, Chain::Run(&self.run), Some(known), tip);
            received.map_err(|why| Error::Stranger(self.run.clone(), why))?;
        }
        (self.frontier, self.head, self.state) = (frontier(&view.links), view.head, view.state);
        self.generation += 1;
        Ok(())
    }

    /// Records events in order with one swap of the ref, together with what is staged, and returns the entries of both.
    ///
    /// If somebody else appended first, their entries are taken in and the events are tried again; those that the new state
    /// no longer allows, such as the end of an attempt that was cancelled meanwhile, are left out. After any error the state
    /// is what the ref says, and nothing is staged.
    pub fn record(&mut self, entries: &[NewEntry]) -> Result<Vec<Link>, Error> {
        self.stage(entries)?;
        self.publish()
    }

    /// Takes events into the state, to be recorded together with those of the next [`OpenRun::record`]: one swap costs as much for
    /// both. Nobody else sees them before, and a crash forgets them. After an error the state is what the ref says, and nothing is staged.
    pub fn stage(&mut self, entries: &[NewEntry]) -> Result<(), Error> {
        let staged = self.take_in(entries, false);
        staged.or_else(|error| self.forget().and(Err(error)))
    }

    /// Returns whether the state holds what the chain does not yet.
    pub fn has_staged(&self) -> bool {
        !self.staged.entries.is_empty()
    }

    /// Records what is staged.
    pub fn publish(&mut self) -> Result<Vec<Link>, Error> {
        if !self.has_staged() {
            return Ok(Vec::new());
        }
        loop {
            let entries = std::mem::take(&mut self.staged.entries);
            match self.publish_once()? {
                Some(links) => return Ok(links),
                None => self.take_in(&entries, true).or_else(|error| self.forget().and(Err(error)))?,
            }
        }
    }

    /// Records events that follow from the state as it is, or nothing at all if somebody else appended first: then their
    /// entries are taken in, and none is returned. After any error the state is what the ref says. What is staged is recorded before.
    pub fn propose(&mut self, entries: &[NewEntry]) -> Result<Option<Vec<Link>>, Error> {
        let generation = self.generation;
        self.publish()?;
        if self.generation != generation {
            return Ok(None);
        }
        self.stage(entries)?;
        self.publish_unless_raced()
    }

    /// Records what is staged, or nothing of it if somebody else appended first: then their entries are taken in, what was staged is
    /// forgotten, and none is returned.
    pub fn publish_unless_raced(&mut self) -> Result<Option<Vec<Link>>, Error> {
        if self.has_staged() { self.publish_once() } else { Ok(Some(Vec::new())) }
    }

    /// Records what is staged with one swap; none where somebody else was quicker and there is another turn. After an error and where
    /// none is returned, the state is what the ref says, and nothing is staged.
    fn publish_once(&mut self) -> Result<Option<Vec<Link>>, Error> {
        let drafts = std::mem::take(&mut self.staged).drafts;
        let published = self.writer.append(&self.head, drafts).and_then(chain::Appended::publish);
        match published {
            Ok((head, links)) => {
                self.head = head;
                links.iter().for_each(|link| self.frontier.push(link.hash));
                self.race = Race::default();
                Ok(Some(links))
            }
            Err(error) => {
                // Others are read after the pause, so that the next turn goes by what is there then.
                let again = error.is_lost() && self.race.again();
                self.reload()?;
                if again { Ok(None) } else { Err(error.into()) }
            }
        }
    }

    /// Takes events into the state; where a race was lost, those that it allows.
    fn take_in(&mut self, entries: &[NewEntry], raced: bool) -> Result<(), Error> {
        for new in entries {
            // What was resolved before others wrote may be bound to a revision that is not the highest any more.
            if raced && !new.is_bound(&self.state) {
                continue;
            }
            let key = self.writer.signer.fingerprint();
            if let Some(why) = new.refused(&self.state.keys, &key) {
                return Err(Error::Role { run: self.run.clone(), key, why });
            }
            match new.apply(&mut self.state) {
                Ok(event) => {
                    let draft = self.draft(new, event);
                    self.staged.drafts.push(draft);
                    self.staged.entries.push(new.clone());
                }
                Err(_) if raced => {}
                Err(why) => return Err(Error::Illegal(why)),
            }
        }
        Ok(())
    }

    /// Goes back to what the ref says: nothing is staged any more.
    pub fn forget(&mut self) -> Result<(), Error> {
        self.staged = Staged::default();
        self.reload()
    }

    /// Seals the run, after recording `before` if the run was not ended yet.
    ///
    /// Whoever appends in between is taken in first: the root is always over exactly what stands before the seal. If it was
    /// sealed by somebody else in between, their seal is returned, whatever became of `before`. A run with rules that nobody
    /// ended is sealed only as it was when the rules were looked at: what comes in between is [`chain::Error::LostRace`].
    pub fn seal(&mut self, before: Option<Event>) -> Result<RunSealed, Error> {
        self.record(before.map(NewEntry::Plain).as_slice())?;
        loop {
            if self.state.sealed
                && let Some(sealed) = self.mend_seal()?
            {
                return Ok(sealed);
            }
            let sealed = self.next_seal()?;
            if let Some(links) = self.propose(&[NewEntry::Plain(Event::RunSealed(sealed.clone()))])? {
                let seal = links.first().expect("one event makes one entry");
                // A crash here leaves a sealed run that its log does not name yet; `run` and `doctor` add the entry.
                self.log_seal(&sealed, seal)?;
                return Ok(sealed);
            }
            let decided = self.state.rules.is_empty() || self.state.is_ended() || self.state.sealed;
            if !decided {
                return Err(chain::Error::LostRace(self.head.name.clone()).into());
            }
        }
    }

    /// Returns the seal of the run as it stands.
    fn next_seal(&self) -> Result<RunSealed, Error> {
        let stopped = stops::stopped(self.store(), &self.state);
        let stopped = stopped.map_err(|(rule, why)| Error::Unjudged(self.run.clone(), rule, why))?;
        let (root, entries) = (self.frontier.root(), self.frontier.len());
        Ok(RunSealed { root, entries, counts: self.state.counts(), stopped })
    }

    fn log_seal(&self, sealed: &RunSealed, seal: &Link) -> Result<(), Error> {
        let (root, entries, run) = (sealed.root, sealed.entries, self.run.clone());
        let record = Record::Sealed { run, root, entries, seal: seal.hash, commit: seal.commit };
        Ok(log::ensure(&self.writer, &record)?)
    }

    /// Adds the log entry of a seal that a crash left out; returns what is sealed, if the run is.
    pub fn mend_seal(&self) -> Result<Option<RunSealed>, Error> {
        let Some((_, links)) = chain::read(&self.writer.store, &self.head.name)? else { return Ok(None) };
        let Some(seal) = links.last() else { return Ok(None) };
        let Event::RunSealed(sealed) = &seal.entry.event else { return Ok(None) };
        self.log_seal(sealed, seal)?;
        Ok(Some(sealed.clone()))
    }

    /// Returns the entry of an event, and what it changes in the run's tree.
    fn draft(&self, new: &NewEntry, event: Event) -> Draft {
        let layout = self.state.layout();
        let mut edits = Vec::new();
        if let Some((item, _)) = event.item() {
            if let NewEntry::Fired(_, manifest) = new {
                edits.push((layout.manifest(item), Edit::Bytes(manifest.canonical())));
            }
            if let Event::ItemReconciled(e) = &event {
                let before = layout.products(item);
                edits.extend(before.map(|path| (path.trim_end_matches('/').to_owned(), Edit::Remove)));
                for (key, product) in &e.products {
                    edits.push((layout.product(item, key), Edit::Blob(product.oid)));
                }
            }
            if let NewEntry::Reused(_, evidence) = new {
                edits.push((layout.reused(item), Edit::Bytes(evidence.clone())));
            }
            let at = self.state.graph.position(item).expect("the event was applied to the state");
            edits.push((layout.state(item), Edit::Bytes(self.state.items[at].canonical())));
        }
        if let NewEntry::Extended(_, items, pipelines) = new {
            for item in items {
                edits.push((layout.definition(&item.id), Edit::Bytes(extension::definition(item))));
            }
            for spec in pipelines.values() {
                edits.push((format::pipeline_path(spec.digest()), Edit::Bytes(spec.bytes().to_vec())));
            }
        }
        if let Event::DocumentWritten(e) = &event {
            edits.push((format::document_path(&e.name), Edit::Blob(e.oid)));
        }
        Draft { about: self.run.clone().into(), event, edits }
    }
}

fn frontier(links: &[Link]) -> Frontier {
    let mut frontier = Frontier::default();
    links.iter().for_each(|link| frontier.push(link.hash));
    frontier
}

/// Returns the event that closes a run.
pub fn closed(reason: &str) -> Event {
    Event::RunClosed(RunEnded { reason: reason.to_owned() })
}
