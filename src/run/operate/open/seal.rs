//! Seals runs, and records the seals in logs.
use crate::git::refs;
use crate::git::store::{KeepGuard, Store};
use crate::git::tip::{Move, Tip};
use crate::ledger::chain::{self, Link};
use crate::ledger::log;
use crate::model::digest::Oid;
use crate::model::entry::{Event, LogRecorded, RunSealed};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::run::operate::new_entry::NewEntry;
use crate::run::operate::via::Via;
use crate::run::query::stopped_rules;
use crate::verify::{self, Chain};

use super::{Applying, Error, OpenRun};

impl OpenRun {
    /// Seals the run, after recording `before`, which ends it.
    ///
    /// Entries that other writers append in between are included, because the root covers
    /// everything before the seal. If another writer sealed the run, this returns that seal. A run
    /// with rules that has not ended is sealed only in the state in which the rules were checked.
    /// Otherwise this returns [`chain::Error::LostRace`].
    pub fn seal(&mut self, before: Option<Event>) -> Result<RunSealed, Error> {
        self.record(before.map(NewEntry::plain).as_slice())?;
        loop {
            if self.state.sealed
                && let Some(sealed) = if self.shared.is_some() { self.read_seal()? } else { self.mend_seal()? }
            {
                return Ok(sealed);
            }
            let sealed = self.next_seal()?;
            if self.shared.is_some() {
                if self.push_seal(&sealed)? {
                    return Ok(sealed);
                }
            } else if let Some(links) = self.propose(&[NewEntry::plain(Event::RunSealed(sealed.clone()))])? {
                let seal = links.first().expect("one event makes one entry");
                // After a crash here the log lacks the seal; `run` and `doctor` add it.
                self.log_seal(&sealed, seal)?;
                return Ok(sealed);
            }
            let decided = self.state.rules.is_empty() || self.state.is_ended() || self.state.sealed;
            if !decided {
                return Err(chain::Error::LostRace(self.head.name.clone()).into());
            }
        }
    }

    fn next_seal(&self) -> Result<RunSealed, Error> {
        let stopped = stopped_rules::stopped(self.store(), &self.state);
        let stopped = stopped.map_err(|(rule, why)| Error::Unjudged(self.run.clone(), rule, why))?;
        Ok(RunSealed { stopped, ..RunSealed::new(self.frontier.root()) })
    }

    /// Returns what our log states about a seal.
    fn seal_record(&self, sealed: &RunSealed, seal: &Link) -> LogRecorded {
        let (log, first) = (self.writer.signer.fingerprint(), self.first());
        LogRecorded { root: Some(sealed.root), ..LogRecorded::new(log, first, seal.entry.seq, seal.hash) }
    }

    fn log_seal(&self, sealed: &RunSealed, seal: &Link) -> Result<(), Error> {
        Ok(log::ensure(&self.writer, &self.run.clone().into(), &self.seal_record(sealed, seal))?)
    }

    /// Adds the log entry of a seal after a crash. Returns the seal, or `None` if the run is not
    /// sealed.
    pub fn mend_seal(&self) -> Result<Option<RunSealed>, Error> {
        let Some((_, links)) = chain::read(&self.writer.store, &self.head.name)? else { return Ok(None) };
        let Some(seal) = links.last() else { return Ok(None) };
        let Event::RunSealed(sealed) = &seal.entry.event else { return Ok(None) };
        self.log_seal(sealed, seal)?;
        Ok(Some(sealed.clone()))
    }

    /// Returns the seal at the head, or `None` if the run is not sealed.
    fn read_seal(&self) -> Result<Option<RunSealed>, Error> {
        let Some(tip) = self.head.commit else { return Ok(None) };
        match chain::decode(&self.writer.store, tip)?.entry.event {
            Event::RunSealed(sealed) => Ok(Some(sealed)),
            _ => Ok(None),
        }
    }

    /// Seals a shared run: the seal and its entry in our log are one push. Returns false if another
    /// writer appended first.
    ///
    /// A sealed run is therefore anchored in a log on the remote.
    pub(super) fn push_seal(&mut self, sealed: &RunSealed) -> Result<bool, Error> {
        let generation = self.generation;
        self.publish()?;
        if self.generation != generation {
            return Ok(false);
        }
        let seal = [NewEntry::plain(Event::RunSealed(sealed.clone()))];
        if let Err(error) = self.apply(&seal, Applying::All) {
            self.unstage();
            return Err(error);
        }
        let drafts = std::mem::take(&mut self.staged).drafts;
        let appended = self.writer.append(&self.head, drafts)?;
        let Some(draft_seal) = appended.links().last() else { return Ok(false) };
        let record = self.seal_record(sealed, draft_seal);
        let (guard, links) = appended.place()?;
        let log = self.extend_log(record)?;
        let grown = &log.extension;
        let more = Move { name: grown.name.reference(), old: grown.old, new: Some(grown.head) };
        let Some(links) = self.push_links(&guard, links, &[more])? else { return Ok(false) };
        log.publish(&self.writer.store)?;
        if let Some(placed_seal) = links.last() {
            self.log_seal(sealed, placed_seal)?;
        }
        Ok(true)
    }

    /// Writes a record after the end of a public log of our key on the remote, or into a new one.
    fn extend_log(&self, record: LogRecorded) -> Result<SealLog, Error> {
        let mut guard = KeepGuard::default();
        let known = match self.via().map(Via::tip) {
            Some(tip) => self.log_there(tip, &record, &mut guard)?,
            None => None,
        };
        let is_adopted = match &known {
            Some((name, head)) => refs::read(&self.writer.store, &name.reference())? != Some(*head),
            None => false,
        };
        let event = log::Dated { at: self.writer.clock.now(), event: Event::LogRecorded(record) };
        let known = known.as_ref().map(|(name, head)| (name, *head));
        let extension = log::extend(&self.writer, known, vec![(self.run.clone().into(), event)])?;
        Ok(SealLog { extension, is_adopted, _kept: guard })
    }

    /// Returns a public log of our key on the remote that can be continued, a log of this
    /// repository first; fetches and keeps it.
    fn log_there(
        &self,
        tip: &Tip,
        record: &LogRecorded,
        guard: &mut KeepGuard,
    ) -> Result<Option<(LogName, Oid)>, Error> {
        let (store, key) = (&self.writer.store, record.log.as_str());
        let about = self.run.clone().into();
        let unreachable = |why| Error::Unreachable { remote: tip.remote().to_owned(), why: Box::new(why) };
        let pattern = format!("{}.*", LogName::from_fingerprint(key).reference());
        let listed = tip.list(&[&pattern]).map_err(unreachable)?;
        let logs = listed
            .iter()
            .filter_map(|(name, head)| Some((LogName::decode(name.strip_prefix(format::LOG_REFS)?)?, *head)));
        let logs: Vec<(LogName, Oid)> = logs.filter(|(name, _)| name.key() == key).collect();
        for (name, head) in &logs {
            if refs::read(store, &name.reference())? == Some(*head) {
                return Ok(Some((name.clone(), *head)));
            }
        }
        for (name, head) in logs {
            if !store.contains(head) {
                match tip.fetch(&[head]) {
                    Ok(fetched) => guard.join(fetched),
                    Err(why) if why.refuses_objects() => continue,
                    Err(why) => return Err(unreachable(why)),
                }
            }
            let is_sound = verify::check_incoming(store, Chain::Log(&name), None, head).is_ok();
            // The key may have recorded another run of this id, or another seal.
            if is_sound && record.may_follow(&about, log::last(store, head, &name, &self.run)?.as_ref()) {
                return Ok(Some((name, head)));
            }
        }
        Ok(None)
    }
}

/// A log with the entry of a seal that is not visible yet.
struct SealLog {
    extension: log::Extension,
    /// Whether it continues a log that another clone may have written: then it gets no ref here.
    is_adopted: bool,
    _kept: KeepGuard,
}

impl SealLog {
    fn publish(self, store: &Store) -> Result<(), log::Error> {
        if self.is_adopted { Ok(()) } else { self.extension.publish(store) }
    }
}
