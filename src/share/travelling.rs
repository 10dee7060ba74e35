//! A shared log and its statements about each run and thread.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::ledger::chain::{self, Link};
use crate::ledger::log::{self, Dated};
use crate::model::digest::Oid;
use crate::model::entry::{Event, Subject};
use crate::model::format;
use crate::model::log_name::LogName;

use super::outbound::place_of;

/// A log that can be pushed.
pub(super) struct Travelling {
    pub(super) name: LogName,
    /// The present head to continue.
    pub(super) head: Oid,
    /// False if its entries cannot be read.
    pub(super) is_read: bool,
    /// Whether the remote has it, possibly an earlier state.
    pub(super) is_there: bool,
    /// Whether it continues a head that another clone may have written.
    pub(super) is_adopted: bool,
    said: BTreeMap<Subject, Vec<Dated>>,
}

impl Travelling {
    /// Creates a log from the entries up to `head`.
    pub(super) fn new(name: LogName, head: Oid, links: &[Link]) -> Self {
        let mut said: BTreeMap<Subject, Vec<Dated>> = BTreeMap::new();
        for Link { entry, .. } in links {
            said.entry(entry.about.clone()).or_default().push(Dated::of(entry));
        }
        Self { name, head, is_read: !links.is_empty(), is_there: false, is_adopted: false, said }
    }

    /// Returns the statements about a run or thread.
    fn said_of(&self, about: &Subject) -> &[Dated] {
        self.said.get(about).map_or(&[], Vec::as_slice)
    }

    /// Adds appended statements.
    pub(super) fn say(&mut self, events: &[(Subject, Dated)]) {
        for (about, event) in events {
            self.said.entry(about.clone()).or_default().push(event.clone());
        }
    }

    /// Returns those statements about a run or thread that the log lacks, in order.
    pub(super) fn lacks(&self, about: &Subject, events: &[Dated]) -> Vec<Dated> {
        let said = self.said_of(about);
        let (known, all) = (statements(said), statements(events));
        let records = events.iter().filter(|dated| !log::is_statement(&dated.event) && !says(said, &dated.event));
        // The last statement counts, so the order must be kept.
        let is_prefix = known.len() <= all.len() && known.iter().zip(&all).all(|(one, other)| one.event == other.event);
        let more = if is_prefix { &all[known.len()..] } else { &all[..] };
        // A later statement of the key, from another clone, stands.
        let is_own = |dated: &Dated| all.iter().any(|own| own.event == dated.event);
        let later: Vec<_> = known.iter().filter(|dated| !is_own(dated)).collect();
        let is_overtaken =
            |new: &&&Dated| later.iter().any(|known| known.at > new.at && is_of_same(&known.event, &new.event));
        records.chain(more.iter().copied().filter(|new| !is_overtaken(&new))).cloned().collect()
    }

    /// Returns true if the log contradicts the statements to push, or if the thread here is
    /// unreadable, so that they cannot be compared.
    pub(super) fn contradicts(&self, store: &Store, about: &Subject, events: &[Dated]) -> bool {
        let said = self.said_of(about);
        let differs = said.iter().any(|known| {
            events.iter().any(|new| match (&known.event, &new.event) {
                (Event::LogSubmitted(known), Event::LogSubmitted(new)) => known != new,
                (Event::LogSealed(known), Event::LogSealed(new)) => known != new,
                _ => false,
            })
        });
        let mut threads = said.iter().filter_map(|known| match &known.event {
            Event::LogThread(known) => Some(known),
            _ => None,
        });
        let Some((first, place)) = threads.next().zip(place_of(about)) else { return differs };
        let Ok(read) = chain::read(store, &place.below(format::REFS)) else { return true };
        let links = read.map_or_else(Vec::new, |(_, links)| links);
        let other = std::iter::once(first).chain(threads).any(|known| {
            let last = usize::try_from(known.entries).ok().and_then(|count| links.get(count.checked_sub(1)?));
            last.is_some_and(|link| link.hash != known.last)
        });
        differs || other
    }

    /// Returns the statements of another log of the key that this one lacks, or `None` if this one
    /// cannot contain them.
    pub(super) fn folded(&self, other: &Self) -> Option<Vec<(Subject, Dated)>> {
        let mut lacking = Vec::new();
        for (about, events) in &other.said {
            let said = self.said_of(about);
            let (known, all) = (statements(said), statements(events));
            if !known.is_empty() && !known.iter().map(|one| &one.event).eq(all.iter().map(|one| &one.event)) {
                return None;
            }
            for dated in events {
                let is_statement = log::is_statement(&dated.event);
                let is_said = said.iter().any(|known| known.event == dated.event);
                if if is_statement { !known.is_empty() } else { is_said } {
                    continue;
                }
                if !is_statement && says(said, &dated.event) {
                    return None;
                }
                lacking.push((about.clone(), dated.clone()));
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

/// Returns true if a record is redundant after earlier statements about its run or thread.
fn says(said: &[Dated], event: &Event) -> bool {
    said.iter().any(|known| match (&known.event, event) {
        (Event::LogThread(known), Event::LogThread(new)) => known.entries >= new.entries,
        (Event::LogSealed(_), Event::LogSealed(_) | Event::LogSubmitted(_))
        | (Event::LogSubmitted(_), Event::LogSubmitted(_)) => true,
        _ => false,
    })
}
