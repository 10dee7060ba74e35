//! A shared log and its statements about each run and thread.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::refs;
use crate::git::store::Store;
use crate::ledger::chain::{self, Link};
use crate::ledger::log::{self, Dated};
use crate::model::digest::Oid;
use crate::model::entry::{Event, LogRecorded, Subject};
use crate::model::format;
use crate::model::log_name::LogName;

use crate::model::place::{Kind, Place};

/// A log that can be pushed.
pub(super) struct SharedLog {
    pub(super) name: LogName,
    /// The present head to continue.
    pub(super) head: Oid,
    /// False if its entries cannot be read.
    pub(super) is_read: bool,
    /// Whether the remote has it, possibly an earlier state.
    pub(super) is_there: bool,
    /// Whether it continues a head that another clone may have written.
    pub(super) is_adopted: bool,
    statements: BTreeMap<Subject, Vec<Dated>>,
}

impl SharedLog {
    /// Creates a log from the entries up to `head`.
    pub(super) fn new(name: LogName, head: Oid, links: &[Link]) -> Self {
        let mut statements: BTreeMap<Subject, Vec<Dated>> = BTreeMap::new();
        for Link { entry, .. } in links {
            statements.entry(entry.about.clone()).or_default().push(Dated::from_entry(entry));
        }
        Self { name, head, is_read: !links.is_empty(), is_there: false, is_adopted: false, statements }
    }

    /// Returns the statements about a run or thread.
    fn statements_about(&self, about: &Subject) -> &[Dated] {
        self.statements.get(about).map_or(&[], Vec::as_slice)
    }

    /// Adds appended statements.
    pub(super) fn say(&mut self, events: &[(Subject, Dated)]) {
        for (about, event) in events {
            self.statements.entry(about.clone()).or_default().push(event.clone());
        }
    }

    /// Returns those statements about a run or thread that the log lacks, in order.
    pub(super) fn lacks(&self, about: &Subject, events: &[Dated]) -> Vec<Dated> {
        let recorded = self.statements_about(about);
        let (known, all) = (statements(recorded), statements(events));
        let records = events.iter().filter(|dated| match &dated.event {
            Event::LogRecorded(new) => !records(recorded).any(|record| record.covers(new)),
            _ => false,
        });
        // The last statement counts, so the order must be kept.
        let is_prefix = known.len() <= all.len() && known.iter().zip(&all).all(|(one, other)| one.event == other.event);
        let more = if is_prefix { &all[known.len()..] } else { &all[..] };
        // A later statement of the key, from another clone, stands.
        let later: Vec<_> = known.iter().filter(|dated| !all.iter().any(|own| own.event == dated.event)).collect();
        let is_overtaken =
            |new: &&&Dated| later.iter().any(|other| other.at > new.at && is_of_same(&other.event, &new.event));
        records.chain(more.iter().copied().filter(|new| !is_overtaken(&new))).cloned().collect()
    }

    /// Returns true if the log contradicts the statements to push, or if the thread here is
    /// unreadable, so that they cannot be compared.
    pub(super) fn contradicts(&self, store: &Store, about: &Subject, events: &[Dated]) -> bool {
        let known = || records(self.statements_about(about));
        if known().any(|known| records(events).any(|new| known.contradicts(new))) {
            return true;
        }
        let Some(place) = about.thread().filter(|_| known().next().is_some()).map(Place::of_thread) else {
            return false;
        };
        let Ok(read) = chain::read(store, &place.below(format::REFS)) else { return true };
        let links = read.map_or_else(Vec::new, |(_, links)| links);
        known().any(|known| {
            usize::try_from(known.last_seq)
                .ok()
                .and_then(|at| links.get(at))
                .is_some_and(|link| link.hash != known.last)
        })
    }

    /// Returns the statements of another log of the key that this one lacks, or `None` if this one
    /// cannot contain them.
    pub(super) fn folded(&self, other: &Self) -> Option<Vec<(Subject, Dated)>> {
        let mut lacking = Vec::new();
        for (about, events) in &other.statements {
            let recorded = self.statements_about(about);
            let (known, all) = (statements(recorded), statements(events));
            if !known.is_empty() && !known.iter().map(|one| &one.event).eq(all.iter().map(|one| &one.event)) {
                return None;
            }
            for dated in events {
                let is_recorded = match &dated.event {
                    Event::LogRecorded(new) if records(recorded).any(|record| record.implies(new)) => true,
                    Event::LogRecorded(new) if records(recorded).any(|record| !new.may_follow(about, Some(record))) => {
                        return None;
                    }
                    Event::LogRecorded(_) => false,
                    _ => !known.is_empty(),
                };
                if !is_recorded {
                    lacking.push((about.clone(), dated.clone()));
                }
            }
        }
        Some(lacking)
    }

    /// Returns true if the log contains every statement of another log of its key.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.folded(other).is_some_and(|lacking| lacking.is_empty())
    }
}

fn statements(events: &[Dated]) -> Vec<&Dated> {
    events.iter().filter(|dated| log::is_statement(&dated.event)).collect()
}

/// Returns true if two statements are about the same item or document of a run.
fn is_of_same(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::LogDecided(one), Event::LogDecided(other)) => one.item == other.item,
        (Event::LogWritten(one), Event::LogWritten(other)) => one.name == other.name,
        _ => false,
    }
}

fn records(events: &[Dated]) -> impl Iterator<Item = &LogRecorded> {
    events.iter().filter_map(|dated| match &dated.event {
        Event::LogRecorded(recorded) => Some(recorded),
        _ => None,
    })
}

/// Deletes the fetched refs of logs that a remote lacks because another log of the same key
/// contains their statements; returns their places.
///
/// Nothing is lost: a fetched log that the remote shows contains every statement.
pub(super) fn delete_folded(
    store: &Store,
    folder: &str,
    listed_places: &BTreeSet<Place>,
) -> Result<BTreeSet<Place>, refs::Error> {
    let (mut there, mut gone) = (BTreeMap::<String, Vec<(LogName, Oid)>>::new(), Vec::new());
    for (name, head) in refs::list(store, &format!("{folder}logs/"))? {
        let place = name.strip_prefix(folder).and_then(Place::parse).filter(|place| place.kind == Kind::Log);
        let Some((place, log)) = place.and_then(|place| Some((place.clone(), LogName::parse(&place.name)?))) else {
            continue;
        };
        if listed_places.contains(&place) {
            there.entry(log.key().to_owned()).or_default().push((log, head));
        } else {
            gone.push((place, log, head));
        }
    }
    let mut folded = BTreeSet::new();
    for (place, log, head) in gone {
        let others = there.get(log.key()).map_or(&[][..], Vec::as_slice);
        let Some(folded_log) = read(store, &log, head) else { continue };
        if others.iter().filter_map(|(other, tip)| read(store, other, *tip)).any(|other| other.covers(&folded_log)) {
            refs::delete(store, &place.below(folder), head)?;
            folded.insert(place);
        }
    }
    Ok(folded)
}

/// Reads a log, or returns `None` if it is unreadable and so cannot replace another.
fn read(store: &Store, log: &LogName, head: Oid) -> Option<SharedLog> {
    let (_, links) = chain::read_at(store, &log.reference(), head).ok()?;
    Some(SharedLog::new(log.clone(), head, &links))
}
