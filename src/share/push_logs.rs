//! Selects or writes the logs to push to one remote, so that they reveal only what is pushed.
//!
//! Everyone with access to a remote can read the logs there. So a log is pushed only if every new
//! statement is about something that is pushed too, or that the remote has. A log of our key on the
//! remote is continued, even if another clone began it. If there is none, a new log begins: two
//! remotes that get different runs get different logs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::Store;
use crate::git::{history, refs};
use crate::ledger::chain::{self, Link, Writer};
use crate::ledger::log::{self, Dated, Error, Extension};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, LogDecided, LogRecorded, LogWritten, Subject};
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, Place};

use super::shared_log::SharedLog;

/// The pushed chains and the state of the remote.
pub(crate) struct Outbound<'a> {
    pub(crate) store: &'a Store,
    /// The writer of logs, if there is a key.
    pub(crate) writer: Option<&'a Writer>,
    /// The pushed runs and threads. `None` means all, and that everything may be revealed.
    pub(crate) handed: Option<BTreeSet<Subject>>,
    /// The runs and threads of this repository.
    pub(crate) ours: &'a BTreeMap<Place, Oid>,
    /// The remote's refs, including the runs in its archives.
    pub(crate) there: &'a BTreeMap<Place, Oid>,
    /// Valid heads of our key's logs on the remote that are here and can be continued.
    pub(crate) theirs: &'a BTreeMap<LogName, Oid>,
    /// Whether to fold our key's logs on the remote into one.
    pub(crate) folds: bool,
    /// A cache of the leaf hashes of first entries, by head of the chain.
    pub(crate) firsts: RefCell<BTreeMap<Oid, Option<Digest>>>,
}

/// The selected logs.
#[derive(Default)]
pub(crate) struct Logs {
    /// The logs to push, with their heads.
    pub(crate) heads: Vec<(LogName, Oid)>,
    /// Logs of our key that can be deleted on the remote, with their heads, because another log
    /// contains all their statements.
    pub(crate) folded: Vec<(LogName, Oid)>,
    /// The log with new entries.
    grown: Option<Extension>,
    /// Whether that log continues one that another clone may have written.
    is_adopted: bool,
}

impl Logs {
    /// Renames the log with new entries.
    pub(crate) fn rename(&mut self, from: &LogName, to: &LogName) {
        if let Some(grown) = self.grown.as_mut().filter(|grown| grown.name == *from) {
            grown.name = to.clone();
        }
    }

    /// Moves the ref of the log with new entries if it has one. Returns the log otherwise, which
    /// keeps its objects: the next bundle of the same runs writes the same log.
    pub(crate) fn publish_known(self, store: &Store) -> Result<Option<Extension>, Error> {
        match self.grown {
            Some(grown) if grown.old.is_some() => grown.publish(store).map(|()| None),
            grown => Ok(grown),
        }
    }

    /// Moves the ref of the log with new entries, if it is a log of this repository.
    ///
    /// A log of this repository names only runs that are or were here, so no local ref gets a log
    /// with statements of other clones.
    pub(crate) fn publish(self, store: &Store) -> Result<(), Error> {
        self.grown.filter(|_| !self.is_adopted).map_or(Ok(()), |grown| grown.publish(store))
    }
}

impl Outbound<'_> {
    /// Writes the missing log entries about what is pushed; returns the logs to push. Moves no ref.
    pub(crate) fn logs(&self) -> Result<Logs, Error> {
        let key = self.writer.map(|writer| writer.signer.fingerprint());
        let lacking = key.as_deref().map_or_else(|| Ok(BTreeMap::new()), |key| self.to_say(key))?;
        let (mut usable, others): (Vec<_>, Vec<_>) =
            self.fitting()?.into_iter().partition(|log| log.is_read && Some(log.name.key()) == key.as_deref());
        // Clones with contradicting statements keep separate logs.
        let contradicts =
            |log: &SharedLog| lacking.iter().any(|(about, events)| log.contradicts(self.store, about, events));
        usable.retain(|log| !log.is_adopted || !contradicts(log));
        let mut logs = Logs::default();
        let continued = match self.writer {
            Some(writer) => self.grow(writer, usable, lacking, &mut logs)?,
            None => usable,
        };
        logs.heads.extend(continued.into_iter().chain(others).map(|log| (log.name, log.head)));
        Ok(logs)
    }

    /// Appends the missing statements to one of the key's logs, or to a new one; returns the others
    /// to push.
    fn grow(
        &self,
        writer: &Writer,
        mut own: Vec<SharedLog>,
        mut lacking: BTreeMap<Subject, Vec<Dated>>,
        logs: &mut Logs,
    ) -> Result<Vec<SharedLog>, Error> {
        own.sort_by(|one, other| (!one.is_there, &one.name).cmp(&(!other.is_there, &other.name)));
        // Continues a log on the remote if there is one.
        let is_any_there = own.first().is_some_and(|log| log.is_there);
        let (mut chosen, mut unused) = (Vec::new(), Vec::new());
        for log in own.into_iter().filter(|log| log.is_there == is_any_there) {
            let before = lacking.len();
            lacking.retain(|about, events| !log.lacks(about, events).is_empty());
            let goes = log.is_there || self.handed.is_none() || lacking.len() < before;
            if goes { chosen.push(log) } else { unused.push(log) }
        }
        if chosen.is_empty() {
            chosen.extend(unused.into_iter().next().filter(|_| !lacking.is_empty()));
        }
        let mut rest = chosen.into_iter();
        let mut grown = rest.next();
        let mut new: Vec<(Subject, Dated)> = lacking
            .iter()
            .flat_map(|(about, events)| {
                let lacks = grown.as_ref().map_or_else(|| events.clone(), |log| log.lacks(about, events));
                lacks.into_iter().map(|dated| (about.clone(), dated)).collect::<Vec<_>>()
            })
            .collect();
        let mut unchanged: Vec<SharedLog> = rest.collect();
        if let Some(grown) = grown.as_mut() {
            grown.say(&new);
            if self.folds {
                new.extend(self.fold(grown, &mut unchanged, logs));
            }
        }
        if !new.is_empty() {
            // The times in a log never decrease.
            new.sort_by_key(|(_, dated)| dated.at);
            let extension = log::extend(writer, grown.as_ref().map(|log| (&log.name, log.head)), new)?;
            logs.heads.push((extension.name.clone(), extension.head));
            logs.grown = Some(extension);
            logs.is_adopted = grown.is_some_and(|log| log.is_adopted);
        } else if let Some(log) = grown {
            logs.heads.push((log.name, log.head));
        }
        Ok(unchanged)
    }

    /// Folds logs on the remote into one of them; returns the additional statements.
    fn fold(&self, into: &mut SharedLog, unchanged: &mut Vec<SharedLog>, logs: &mut Logs) -> Vec<(Subject, Dated)> {
        let mut new = Vec::new();
        unchanged.retain(|log| {
            let head = self.theirs.get(&log.name).filter(|_| into.is_there && log.is_there);
            let Some((head, lacking)) = head.zip(into.folded(log)) else { return true };
            into.say(&lacking);
            new.extend(lacking);
            logs.folded.push((log.name.clone(), *head));
            false
        });
        new
    }

    /// Returns the logs whose new statements may all be revealed to the remote.
    ///
    /// An unreadable log qualifies only if everything may be revealed.
    fn fitting(&self) -> Result<Vec<SharedLog>, Error> {
        let names: BTreeSet<LogName> =
            log::travelling(self.store)?.into_iter().chain(self.theirs.keys().cloned()).collect();
        let mut fitting = Vec::new();
        for name in names {
            if let Some(head) = refs::read(self.store, &name.reference()).map_err(Error::Refs)?
                && let Some(log) = self.local(&name, head)
            {
                fitting.push(log);
            } else if let Some(head) = self.theirs.get(&name).copied() {
                let (_, links) = chain::read_at(self.store, &name.reference(), head)?;
                let mut log = SharedLog::new(name, head, &links);
                (log.is_there, log.is_adopted) = (true, true);
                fitting.push(log);
            }
        }
        Ok(fitting)
    }

    /// Returns a log of this repository, if it continues the remote's and the rest may be revealed.
    fn local(&self, name: &LogName, head: Oid) -> Option<SharedLog> {
        let links = match chain::read_at(self.store, &name.reference(), head) {
            Ok((_, links)) => links,
            Err(_) if self.handed.is_none() => Vec::new(),
            Err(_) => return None,
        };
        let there = self.there.get(&Place::of_log(name));
        let known = there.and_then(|tip| links.iter().position(|link| link.commit == *tip));
        if known.is_none() && self.theirs.contains_key(name) {
            return None;
        }
        let mut new = links[known.map_or(0, |at| at + 1)..].iter().map(|link| &link.entry);
        let fits = new.all(|entry| self.may_tell(&entry.about, &entry.event));
        let mut log = SharedLog::new(name.clone(), head, &links);
        log.is_there = known.is_some();
        fits.then_some(log)
    }

    /// Returns true if a log's statements are about what is pushed, or what the remote has in the
    /// same state.
    fn may_tell(&self, about: &Subject, event: &Event) -> bool {
        let Some(place) = place_of(about) else { return self.handed.is_none() };
        let Some(handed) = &self.handed else { return !self.is_taken(&place, event) };
        if log::is_statement(event) {
            return self.is_of_run_at(&place, event, handed.contains(about));
        }
        let there = self.there.get(&place);
        handed.contains(about) || (there.is_some() && there == self.ours.get(&place))
    }

    /// Returns true if a log names a run and the remote has a different run with that id: a reader
    /// would report a conflict.
    fn is_taken(&self, place: &Place, event: &Event) -> bool {
        let Event::LogRecorded(LogRecorded { first, .. }) = event else { return false };
        place.kind == Kind::Run
            && self.there.get(place).and_then(|tip| self.first_of(*tip)).is_some_and(|there| there != *first)
    }

    /// Returns true if a statement is about the pushed run or the remote's, and not about another
    /// run with that id.
    fn is_of_run_at(&self, place: &Place, event: &Event, is_handed: bool) -> bool {
        let (Event::LogDecided(LogDecided { first, .. }) | Event::LogWritten(LogWritten { first, .. })) = event else {
            return false;
        };
        let ours = self.ours.get(place).filter(|_| is_handed);
        self.there.get(place).into_iter().chain(ours).any(|tip| self.first_of(*tip) == Some(*first))
    }

    /// Returns the leaf hash of a chain's first entry, if the chain is here.
    fn first_of(&self, tip: Oid) -> Option<Digest> {
        *self.firsts.borrow_mut().entry(tip).or_insert_with(|| {
            let first = history::first(self.store, tip)?;
            Some(chain::decode(self.store, first).ok()?.hash)
        })
    }

    /// Returns what our private log says about what is pushed, as a shared log has it: the last
    /// record of each run and thread, and the statements.
    ///
    /// Statements about others' runs are pushed wherever the run is.
    pub(super) fn to_say(&self, key: &str) -> Result<BTreeMap<Subject, Vec<Dated>>, Error> {
        let mut say: BTreeMap<Subject, Vec<Dated>> = BTreeMap::new();
        for Link { entry, .. } in log::private(self.store, key)? {
            let Dated { at, event } = Dated::from_entry(&entry);
            let about = entry.about;
            let Some(place) = place_of(&about) else { continue };
            let is_ours = self.ours.contains_key(&place);
            let is_handed = self.handed.as_ref().map_or(is_ours, |handed| handed.contains(&about) && is_ours);
            let goes = if log::is_statement(&event) {
                self.handed.is_none() || self.is_of_run_at(&place, &event, is_handed)
            } else {
                is_handed
            };
            if !goes {
                continue;
            }
            let events = say.entry(about).or_default();
            if !log::is_statement(&event) {
                events.retain(|dated| log::is_statement(&dated.event));
            }
            events.push(Dated { at, event });
        }
        Ok(say)
    }
}

/// Returns the place of a run or thread.
pub(crate) fn place_of(about: &Subject) -> Option<Place> {
    match about {
        Subject::Run(run) => Some(Place::of_run(run)),
        Subject::Thread(thread) => Some(Place::of_thread(thread)),
        Subject::Archive(_) => None,
    }
}

/// Returns the run or thread of a place.
pub(crate) fn subject_of(place: &Place) -> Option<Subject> {
    match place.kind {
        Kind::Run => RunId::parse(&place.name).ok().map(Subject::Run),
        Kind::Thread => ThreadId::parse(&place.name).ok().map(Subject::Thread),
        Kind::Log | Kind::Archive | Kind::Transcripts | Kind::Stamps | Kind::ThreadStamps => None,
    }
}
