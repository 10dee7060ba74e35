//! The logs that go to one place, which say there of what is handed over and of nothing else.
//!
//! A log that travels is read by everybody at the places that have it. So it goes to a place only if all that the place would
//! learn from it is about what is handed over, or lies there already. A log of the key that the place has is gone on from, also
//! if another clone began it. Where there is none, another one begins: of two places that get different runs, each has a log
//! of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::Store;
use crate::git::{history, refs};
use crate::ledger::chain::{self, Link, Writer};
use crate::ledger::log::{self, Dated, Error, Extension};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, LogDecided, LogSubmitted, LogWritten, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, Place};

use super::travelling::Travelling;

/// What goes to a place, and what the place has.
pub(crate) struct Outbound<'a> {
    pub(crate) store: &'a Store,
    /// Who signs logs here, if there is a key.
    pub(crate) writer: Option<&'a Writer>,
    /// The runs and threads that are handed over; `None` means everything, and that all may be told.
    pub(crate) handed: Option<BTreeSet<Subject>>,
    /// The runs and threads of this repository.
    pub(crate) ours: &'a BTreeMap<Place, Oid>,
    /// What the place shows, with the runs in its archives.
    pub(crate) there: &'a BTreeMap<Place, Oid>,
    /// The heads of logs of our key at the place that ours goes on from: sound, and here.
    pub(crate) theirs: &'a BTreeMap<LogName, Oid>,
    /// Whether the logs of our key at the place become one.
    pub(crate) folds: bool,
    /// The leaf hashes of the first entries of chains, by their heads, as far as they were looked for.
    pub(crate) firsts: RefCell<BTreeMap<Oid, Option<Digest>>>,
}

/// The logs that go.
#[derive(Default)]
pub(crate) struct Logs {
    /// Each log with its head.
    pub(crate) heads: Vec<(LogName, Oid)>,
    /// Logs of our key that may go from the place, each with its head there, because another one says all that they say.
    pub(crate) folded: Vec<(LogName, Oid)>,
    /// The log that has new entries.
    grown: Option<Extension>,
    /// Whether that log goes on from what another clone may have said.
    is_adopted: bool,
}

impl Logs {
    /// Gives the log that has new entries another name.
    pub(crate) fn rename(&mut self, from: &LogName, to: &LogName) {
        if let Some(grown) = self.grown.as_mut().filter(|grown| grown.name == *from) {
            grown.name = to.clone();
        }
    }

    /// Moves the ref of the log that has new entries, if it is a log of this repository.
    ///
    /// A log of this repository names runs that are, or were, here. So no ref holds a log in which other clones speak.
    pub(crate) fn publish(self, store: &Store) -> Result<(), Error> {
        self.grown.filter(|_| !self.is_adopted).map_or(Ok(()), |grown| grown.publish(store))
    }
}

impl Outbound<'_> {
    /// Writes what the logs lack of what is handed over, and returns those that go. No ref moves.
    pub(crate) fn logs(&self) -> Result<Logs, Error> {
        let key = self.writer.map(|writer| writer.signer.fingerprint());
        let lacking = key.as_deref().map_or_else(|| Ok(BTreeMap::new()), |key| self.to_say(key))?;
        let (mut usable, others): (Vec<_>, Vec<_>) =
            self.fitting()?.into_iter().partition(|log| log.is_read && Some(log.name.key()) == key.as_deref());
        // Two clones that tell two stories have two logs, so that both are heard.
        let contradicts =
            |log: &Travelling| lacking.iter().any(|(about, events)| log.contradicts(self.store, about, events));
        usable.retain(|log| !log.is_adopted || !contradicts(log));
        let mut logs = Logs::default();
        let going = match self.writer {
            Some(writer) => self.grow(writer, usable, lacking, &mut logs)?,
            None => usable,
        };
        logs.heads.extend(going.into_iter().chain(others).map(|log| (log.name, log.head)));
        Ok(logs)
    }

    /// Writes onto one of the key's logs, or onto a new one, what is to be said and none says, and returns the others that go.
    fn grow(
        &self,
        writer: &Writer,
        mut own: Vec<Travelling>,
        mut lacking: BTreeMap<Subject, Vec<Dated>>,
        logs: &mut Logs,
    ) -> Result<Vec<Travelling>, Error> {
        own.sort_by(|one, other| (!one.is_there, &one.name).cmp(&(!other.is_there, &other.name)));
        // What the place has goes on; a further log only where it has none.
        let is_any_there = own.first().is_some_and(|log| log.is_there);
        let (mut going, mut spare) = (Vec::new(), Vec::new());
        for log in own.into_iter().filter(|log| log.is_there == is_any_there) {
            let before = lacking.len();
            lacking.retain(|about, events| !log.lacks(about, events).is_empty());
            let goes = log.is_there || self.handed.is_none() || lacking.len() < before;
            if goes { going.push(log) } else { spare.push(log) }
        }
        if going.is_empty() {
            going.extend(spare.into_iter().next().filter(|_| !lacking.is_empty()));
        }
        let mut rest = going.into_iter();
        let mut grown = rest.next();
        let lacks = |(about, events): (&Subject, &Vec<Dated>)| {
            let lacks = grown.as_ref().map_or_else(|| events.clone(), |log| log.lacks(about, events));
            lacks.into_iter().map(|dated| (about.clone(), dated)).collect::<Vec<_>>()
        };
        let mut new: Vec<(Subject, Dated)> = lacking.iter().flat_map(lacks).collect();
        let mut going: Vec<Travelling> = rest.collect();
        if let Some(grown) = grown.as_mut() {
            grown.say(&new);
            if self.folds {
                new.extend(self.fold(grown, &mut going, logs));
            }
        }
        if !new.is_empty() {
            // Moments of a log never go back.
            new.sort_by_key(|(_, dated)| dated.at);
            let extension = log::extend(writer, grown.as_ref().map(|log| (&log.name, log.head)), new)?;
            logs.heads.push((extension.name.clone(), extension.head));
            logs.grown = Some(extension);
            logs.is_adopted = grown.is_some_and(|log| log.is_adopted);
        } else if let Some(log) = grown {
            logs.heads.push((log.name, log.head));
        }
        Ok(going)
    }

    /// Folds logs that the place has into one that it has; returns what that one says besides.
    fn fold(&self, into: &mut Travelling, going: &mut Vec<Travelling>, logs: &mut Logs) -> Vec<(Subject, Dated)> {
        let mut new = Vec::new();
        going.retain(|log| {
            let head = self.theirs.get(&log.name).filter(|_| into.is_there && log.is_there);
            let Some((head, lacking)) = head.zip(into.folded(log)) else { return true };
            into.say(&lacking);
            new.extend(lacking);
            logs.folded.push((log.name.clone(), *head));
            false
        });
        new
    }

    /// Returns the logs of which the place may learn everything that it does not have.
    ///
    /// A log that cannot be read is one of which nobody knows what it says: it goes only where everything may be told.
    fn fitting(&self) -> Result<Vec<Travelling>, Error> {
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
                let mut log = Travelling::new(name, head, &links);
                (log.is_there, log.is_adopted) = (true, true);
                fitting.push(log);
            }
        }
        Ok(fitting)
    }

    /// Returns a log of this repository, if it goes on from what the place has and the place may learn the rest.
    fn local(&self, name: &LogName, head: Oid) -> Option<Travelling> {
        let links = match chain::read_at(self.store, &name.reference(), head) {
            Ok((_, links)) => links,
            Err(_) if self.handed.is_none() => Vec::new(),
            Err(_) => return None,
        };
        let there = self.there.get(&Place::of_log(name));
        let known = there.and_then(|head| links.iter().position(|link| link.commit == *head));
        if known.is_none() && self.theirs.contains_key(name) {
            return None;
        }
        let mut new = links[known.map_or(0, |at| at + 1)..].iter().map(|link| &link.entry);
        let fits = new.all(|entry| self.may_tell(&entry.about, &entry.event));
        let mut log = Travelling::new(name.clone(), head, &links);
        log.is_there = known.is_some();
        fits.then_some(log)
    }

    /// Returns true if the place may learn what a log says: it is handed over, or lies there just as it is here.
    fn may_tell(&self, about: &Subject, event: &Event) -> bool {
        let Some(place) = place_of(about) else { return self.handed.is_none() };
        let Some(handed) = &self.handed else { return !self.is_taken(&place, event) };
        if log::is_statement(event) {
            return self.is_of_run_at(&place, event, handed.contains(about));
        }
        let there = self.there.get(&place);
        handed.contains(about) || (there.is_some() && there == self.ours.get(&place))
    }

    /// Returns true if a log names the beginning of a run and the place has another one of that id: whoever reads both there
    /// reads of a conflict.
    fn is_taken(&self, place: &Place, event: &Event) -> bool {
        let Event::LogSubmitted(LogSubmitted { first, .. }) = event else { return false };
        self.there.get(place).and_then(|tip| self.first_of(*tip)).is_some_and(|there| there != *first)
    }

    /// Returns true if a statement is about the run that the place has, or that is handed over, and not about another one of
    /// that id.
    fn is_of_run_at(&self, place: &Place, event: &Event, is_handed: bool) -> bool {
        let (Event::LogDecided(LogDecided { first, .. }) | Event::LogWritten(LogWritten { first, .. })) = event else {
            return false;
        };
        let ours = self.ours.get(place).filter(|_| is_handed);
        self.there.get(place).into_iter().chain(ours).any(|tip| self.first_of(*tip) == Some(*first))
    }

    /// Returns the leaf hash of the first entry of a chain that ends at a commit, if it is here.
    fn first_of(&self, tip: Oid) -> Option<Digest> {
        *self.firsts.borrow_mut().entry(tip).or_insert_with(|| {
            let first = history::first(self.store, tip)?;
            Some(chain::decode(self.store, first).ok()?.hash)
        })
    }

    /// Returns what the private log of a key says of what is handed over, as a log that travels says it.
    ///
    /// Statements about runs of others go wherever the run is.
    fn to_say(&self, key: &str) -> Result<BTreeMap<Subject, Vec<Dated>>, Error> {
        let mut say: BTreeMap<Subject, Vec<Dated>> = BTreeMap::new();
        for Link { entry, .. } in log::private(self.store, key)? {
            let Dated { at, event } = Dated::of(&entry);
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
            if matches!(event, Event::LogThread(_)) {
                events.clear();
            }
            // A crash may have left out a submission, and the private log says some things twice.
            if let (Event::LogSealed(sealed), true) = (&event, !events.iter().any(|dated| is_submission(&dated.event)))
                && let Some(first) = self.first_entry(&place)?
            {
                let event = Event::LogSubmitted(LogSubmitted { log: sealed.log.clone(), first });
                events.push(Dated { at, event });
            }
            if log::is_statement(&event) || events.iter().all(|dated| dated.event != event) {
                events.push(Dated { at, event });
            }
        }
        Ok(say)
    }

    /// Returns the leaf hash of the first entry of a run of this repository.
    fn first_entry(&self, place: &Place) -> Result<Option<Digest>, Error> {
        let read = chain::read(self.store, &place.below(format::REFS))?;
        Ok(read.and_then(|(_, links)| Some(links.first()?.hash)))
    }
}

fn is_submission(event: &Event) -> bool {
    matches!(event, Event::LogSubmitted(_))
}

/// Returns the place of a run or a thread.
pub(crate) fn place_of(about: &Subject) -> Option<Place> {
    match about {
        Subject::Run(run) => Some(Place::of_run(run)),
        Subject::Thread(thread) => Some(Place::of_thread(thread)),
        Subject::Archive(_) => None,
    }
}

/// Returns the run or thread that lies in a place.
pub(crate) fn subject_of(place: &Place) -> Option<Subject> {
    match place.kind {
        Kind::Run => RunId::parse(&place.name).ok().map(Subject::Run),
        Kind::Thread => ThreadId::parse(&place.name).ok().map(Subject::Thread),
        Kind::Log | Kind::Archive | Kind::Transcripts | Kind::Stamps => None,
    }
}
