//! The logs that go to one place, which say there of what is handed over and of nothing else.
//!
//! A log that travels is read by everybody at the places that have it. So it goes to a place only if all that the place would
//! learn from it is about what is handed over, or lies there already. Where no log of the key is like that, another one begins:
//! of two places that get different runs, each has a log of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::store::{Kept, Store};
use crate::git::{race, refs};
use crate::ledger::chain::{self, Link, Writer};
use crate::ledger::log::{self, Error};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, LogSubmitted, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};
use crate::model::place::{Kind, Place};

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
}

/// The logs that go, each with its head.
#[derive(Default)]
pub(crate) struct Logs {
    pub(crate) heads: Vec<(LogName, Oid)>,
    /// What keeps the entries of a dry run for as long as they are looked at.
    pub(crate) kept: Kept,
}

/// A log of this repository that travels.
struct Travelling {
    name: LogName,
    head: Oid,
    is_read: bool,
    /// What it says of each run and thread.
    said: BTreeMap<Subject, Vec<Event>>,
    /// Whether the place has it, perhaps as it was before.
    is_there: bool,
}

impl Outbound<'_> {
    /// Appends to the logs what they lack of what is handed over, and returns those that go.
    ///
    /// In a dry run the entries are written, and no ref moves.
    pub(crate) fn logs(&self, dry_run: bool) -> Result<Logs, Error> {
        race::run(|| self.logs_once(dry_run))
    }

    fn logs_once(&self, dry_run: bool) -> Result<Logs, Error> {
        let key = self.writer.map(|writer| writer.signer.fingerprint());
        let (mut own, others): (Vec<_>, Vec<_>) =
            self.fitting()?.into_iter().partition(|log| log.is_read && Some(log.name.key()) == key.as_deref());
        own.sort_by_key(|log| !log.is_there);
        let mut lacking = key.as_deref().map_or_else(|| Ok(BTreeMap::new()), |key| self.to_say(key))?;
        let (mut going, mut spare) = (Vec::new(), Vec::new());
        for log in own {
            let before = lacking.len();
            lacking.retain(|about, events| !log.lacks(about, events).is_empty());
            let goes = log.is_there || self.handed.is_none() || lacking.len() < before;
            if goes { going.push(log) } else { spare.push(log) }
        }
        let mut logs = Logs::default();
        let mut grown = None;
        if let (Some(writer), false) = (self.writer, lacking.is_empty()) {
            let log = if going.is_empty() { spare.first() } else { going.first() };
            let lacks = |(about, events): (&Subject, &Vec<Event>)| {
                let lacks = log.map_or_else(|| events.clone(), |log| log.lacks(about, events));
                lacks.into_iter().map(|event| (about.clone(), event)).collect::<Vec<_>>()
            };
            let extension = log::extend(writer, log.map(|log| &log.name), lacking.iter().flat_map(lacks).collect())?;
            let (name, head) = if dry_run {
                let (name, head, kept) = extension.place()?;
                logs.kept.join(kept);
                (name, head)
            } else {
                extension.publish()?
            };
            logs.heads.extend(head.map(|head| (name.clone(), head)));
            grown = Some(name);
        }
        let going = going.into_iter().chain(others).filter(|log| Some(&log.name) != grown.as_ref());
        logs.heads.extend(going.map(|log| (log.name, log.head)));
        Ok(logs)
    }

    /// Returns the logs of which the place may learn everything that it does not have.
    ///
    /// A log that cannot be read is one of which nobody knows what it says: it goes only where everything may be told.
    fn fitting(&self) -> Result<Vec<Travelling>, Error> {
        let mut fitting = Vec::new();
        for name in log::travelling(self.store)? {
            let Some(head) = refs::read(self.store, &name.reference()).map_err(Error::Refs)? else { continue };
            let links = match chain::read(self.store, &name.reference()) {
                Ok(read) => read.map_or_else(Vec::new, |(_, links)| links),
                Err(_) if self.handed.is_none() => Vec::new(),
                Err(_) => continue,
            };
            let there = self.there.get(&Place::of_log(&name));
            let known = there.and_then(|head| links.iter().position(|link| link.commit == *head));
            let new = &links[known.map_or(0, |at| at + 1)..];
            if new.iter().all(|link| self.may_tell(&link.entry.about, &link.entry.event)) {
                let mut said: BTreeMap<Subject, Vec<Event>> = BTreeMap::new();
                for link in &links {
                    said.entry(link.entry.about.clone()).or_default().push(link.entry.event.clone());
                }
                fitting.push(Travelling { name, head, is_read: !links.is_empty(), said, is_there: known.is_some() });
            }
        }
        Ok(fitting)
    }

    /// Returns true if the place may learn what a log says: it is handed over, or lies there just as it is here.
    fn may_tell(&self, about: &Subject, event: &Event) -> bool {
        let Some(handed) = &self.handed else { return true };
        let Some(place) = place_of(about) else { return false };
        let there = self.there.get(&place);
        let is_there =
            if log::is_statement(event) { there.is_some() } else { there == self.ours.get(&place) && there.is_some() };
        handed.contains(about) || is_there
    }

    /// Returns what the private log of a key says of what is handed over, as a log that travels says it.
    ///
    /// Statements about runs of others go wherever the run is.
    fn to_say(&self, key: &str) -> Result<BTreeMap<Subject, Vec<Event>>, Error> {
        let mut say: BTreeMap<Subject, Vec<Event>> = BTreeMap::new();
        for Link { entry, .. } in log::private(self.store, key)? {
            let (about, event) = (entry.about, entry.event);
            let Some(place) = place_of(&about) else { continue };
            let is_ours = self.ours.contains_key(&place);
            let is_handed = self.handed.as_ref().map_or(is_ours, |handed| handed.contains(&about) && is_ours);
            let goes = if log::is_statement(&event) {
                is_handed || self.handed.is_none() || self.there.contains_key(&place)
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
            if let (Event::LogSealed(sealed), true) = (&event, !events.iter().any(is_submission))
                && let Some(first) = self.first_entry(&place)?
            {
                events.push(Event::LogSubmitted(LogSubmitted { log: sealed.log.clone(), first }));
            }
            if log::is_statement(&event) || !events.contains(&event) {
                events.push(event);
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

impl Travelling {
    /// Returns what of some events about a run or a thread the log does not say, in their order.
    fn lacks(&self, about: &Subject, events: &[Event]) -> Vec<Event> {
        let said = self.said.get(about).map_or(&[][..], Vec::as_slice);
        let statements = |events: &[Event]| events.iter().filter(|event| log::is_statement(event)).cloned().collect();
        let (known, all): (Vec<Event>, Vec<Event>) = (statements(said), statements(events));
        let records = events.iter().filter(|event| !log::is_statement(event) && !says(said, event)).cloned();
        // The last of several statements counts, so that they follow one another in the same order.
        let more = if all.starts_with(&known) { all[known.len()..].to_vec() } else { all };
        records.chain(more).collect()
    }
}

/// Returns true if nothing is left to say by a record after what was said of the same run or thread.
fn says(said: &[Event], event: &Event) -> bool {
    said.iter().any(|known| match (known, event) {
        (Event::LogThread(known), Event::LogThread(new)) => known.entries >= new.entries,
        (Event::LogSealed(_), Event::LogSealed(_) | Event::LogSubmitted(_))
        | (Event::LogSubmitted(_), Event::LogSubmitted(_)) => true,
        _ => false,
    })
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
