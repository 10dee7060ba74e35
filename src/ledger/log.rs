//! The repository logs: append-only chains, one per key, about all runs that the key submitted or
//! sealed.
//!
//! The private log of a key holds everything, and is never pushed. When a run is first pushed or
//! anchored, the entries about it are appended to a public log. So a push reveals nothing about
//! other runs.
//!
//! The private log is written after the run's own ref, and can be rebuilt from it. After a crash in
//! between, the next `run` or `doctor` appends what is missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::codec::Decoded;
use crate::git::retry::{self, Lost};
use crate::git::store::{Edit, KeepGuard, Store};
use crate::git::{history, refs, store};
use crate::ledger::chain::{self, Draft, Head, Link, Writer};
use crate::ledger::sign;
use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event, LogRecorded, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::log_recorded::{self, Indexed};
use crate::model::name::RunId;
use crate::model::place::{self, Place};
use crate::model::time::Moment;

/// Returns the public logs of this repository, of any key.
pub fn travelling(store: &Store) -> Result<Vec<LogName>, Error> {
    let listed = refs::list(store, format::LOG_REFS).map_err(Error::Refs)?;
    let names = listed.iter().filter_map(|(name, _)| LogName::decode(name.strip_prefix(format::LOG_REFS)?));
    Ok(names.filter(LogName::is_further).collect())
}

/// Returns the keys of the private logs of this repository.
pub fn keys(store: &Store) -> Result<Vec<String>, Error> {
    let listed = refs::list(store, format::LOG_REFS).map_err(Error::Refs)?;
    let names = listed.iter().filter_map(|(name, _)| LogName::decode(name.strip_prefix(format::LOG_REFS)?));
    Ok(names.filter(|name| !name.is_further()).map(|name| name.key().to_owned()).collect())
}

/// A public log with new entries that are not visible yet.
#[must_use = "nothing has happened until the log is published"]
pub struct Extension {
    /// The log.
    pub name: LogName,
    /// Its new head.
    pub head: Oid,
    /// Its head before.
    pub old: Option<Oid>,
    guard: KeepGuard,
}

/// An event with the time at which the key first stated it.
#[derive(Clone, Debug)]
pub struct Dated {
    /// The time, as the key claims.
    pub at: Moment,
    /// The event, without `made`.
    pub event: Event,
}

impl Dated {
    /// Returns the event of an entry.
    pub fn from_entry(entry: &Entry) -> Self {
        Self { at: entry.event.made().unwrap_or(entry.at), event: entry.event.clone().with_made(None) }
    }
}

/// Writes events, each about a run or a thread, after the head of a log of the writer's key, or
/// into a new log.
///
/// Each event keeps its time. If the log has later entries, the entry gets the time of the last
/// one, and the event states its own time in `made`.
///
/// A new log is named after the first of its entries whose hash is not the name of another log
/// here.
pub fn extend(
    writer: &Writer,
    log: Option<(&LogName, Oid)>,
    events: Vec<(Subject, Dated)>,
) -> Result<Extension, Error> {
    let head = match log {
        Some((name, head)) => chain::tip_at(&writer.store, &name.reference(), head)?,
        None => Head::unborn(String::new()),
    };
    let (guard, links) = writer.append_dated(&head, dated(head.at, events.clone()))?.place()?;
    if let Some((name, _)) = log {
        return Ok(Extension::new(name.clone(), &head, guard, &links));
    }
    if let Some(name) = free_name(writer, &links)? {
        return Ok(Extension::new(name, &head, guard, &links));
    }
    // Another log of the key has all these entries, so new ones are dated now.
    let now = writer.clock.now();
    let (dated_guard, dated_links) = writer
        .append_dated(
            &head,
            events
                .into_iter()
                .map(|(about, event)| {
                    let made = (event.at < now).then_some(event.at);
                    (now, draft(about, event.event.with_made(made)))
                })
                .collect(),
        )?
        .place()?;
    let name = LogName::with_entry(&writer.signer.fingerprint(), first_of(&dated_links).hash);
    Ok(Extension::new(name, &head, dated_guard, &dated_links))
}

/// Returns drafts with their times. An event older than its predecessor states its time in `made`.
fn dated(mut last: Option<Moment>, events: Vec<(Subject, Dated)>) -> Vec<(Moment, Draft)> {
    events
        .into_iter()
        .map(|(about, Dated { at, event })| {
            let made = last.is_some_and(|last| at < last).then_some(at);
            last = last.max(Some(at));
            (at, draft(about, event.with_made(made)))
        })
        .collect()
}

/// Returns an unused name for a new log, or `None` if all its entries are names of logs here.
fn free_name(writer: &Writer, links: &[Link]) -> Result<Option<LogName>, Error> {
    let fingerprint = writer.signer.fingerprint();
    for link in links {
        let name = LogName::with_entry(&fingerprint, link.hash);
        if refs::read(&writer.store, &name.reference()).map_err(Error::Refs)?.is_none() {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn first_of(links: &[Link]) -> &Link {
    links.first().expect("a log is extended by something to say")
}

impl Extension {
    fn new(name: LogName, head: &Head, guard: KeepGuard, links: &[Link]) -> Self {
        let last = links.last().expect("a log is extended by something to say");
        Self { name, head: last.commit, old: head.commit, guard }
    }

    /// Moves the log's ref to the new head. Fails if another process appended first.
    pub fn publish(self, store: &Store) -> Result<(), Error> {
        let name = self.name.reference();
        let moved = match self.old {
            None => refs::begin(store, &name, self.head),
            Some(old) => refs::advance(store, &name, old, self.head),
        };
        // The objects are kept until the ref has moved.
        drop(self.guard);
        moved.map_err(|error| match error {
            refs::Error::LostRace(lost) => Error::Chain(chain::Error::LostRace(lost)),
            other => Error::Refs(other),
        })
    }
}

/// Returns the entry of an event, with its change to the tree.
fn draft(about: Subject, event: Event) -> Draft {
    let edit = match (&about, &event) {
        (Subject::Run(run), Event::LogDecided(statement)) => {
            Some((format::decided_path(run, &statement.item), Edit::Bytes(statement.canonical())))
        }
        (Subject::Run(run), Event::LogWritten(statement)) => {
            Some((format::written_path(run, &statement.name), Edit::Blob(statement.oid)))
        }
        (_, Event::LogRecorded(recorded)) => {
            log_recorded::path(&about).map(|path| (path, Edit::Bytes(recorded.index(&about).canonical())))
        }
        _ => None,
    };
    Draft { about, event, bytes: Vec::new(), edits: edit.into_iter().collect() }
}

/// Returns the entries of the private log of a key, oldest first.
pub fn private(store: &Store, fingerprint: &str) -> Result<Vec<Link>, Error> {
    let read = chain::read(store, &format::log_ref(fingerprint))?;
    Ok(read.map_or_else(Vec::new, |(_, links)| links))
}

/// Returns a separate name for our log, which ends at `ours`, if a remote has another log under its
/// name.
///
/// `theirs` is the head of the remote's log, whose commits must be here. Returns `None` if the
/// remote's log has another key, or if the two contradict each other about a run or thread. Two
/// logs agree about a run if one has all seals of the other, and one all its other records: the run
/// may have been submitted in one clone and sealed in another.
pub fn separate_name(store: &Store, log: &LogName, ours: Oid, theirs: Oid) -> Result<Option<LogName>, Error> {
    let (own, other) = (history::since(store, ours, None)?, history::since(store, theirs, None)?);
    let known: BTreeSet<&Oid> = other.iter().collect();
    let fork = own.iter().find(|commit| known.contains(commit)).copied();
    let mut their_records: BTreeMap<(Subject, bool), Vec<LogRecorded>> = BTreeMap::new();
    for commit in other.iter().take_while(|commit| Some(**commit) != fork) {
        let Ok(entry) = chain::decode(store, *commit) else { return Ok(None) };
        if !is_signed_by(&entry, log.key()) {
            return Ok(None);
        }
        if let Event::LogRecorded(recorded) = entry.entry.event {
            their_records.entry((entry.entry.about, recorded.root.is_some())).or_default().push(recorded);
        }
    }
    let (mut first, mut own_records) = (None, BTreeMap::<(Subject, bool), Vec<LogRecorded>>::new());
    for commit in own.iter().take_while(|commit| Some(**commit) != fork) {
        let entry = chain::decode(store, *commit)?;
        first = Some(entry.hash);
        if let Event::LogRecorded(recorded) = entry.entry.event {
            own_records.entry((entry.entry.about, recorded.root.is_some())).or_default().push(recorded);
        }
    }
    let agree = own_records.iter().all(|(about, records)| {
        their_records
            .get(about)
            .is_none_or(|counterpart| are_all_in(counterpart, records) || are_all_in(records, counterpart))
    });
    Ok(first.filter(|_| agree).map(|first| LogName::with_entry(log.key(), first)))
}

fn are_all_in(some: &[LogRecorded], all: &[LogRecorded]) -> bool {
    some.iter().all(|recorded| all.contains(recorded))
}

/// Returns other names for our log, which ends at `ours`, the best first. For a remote on which
/// another program took the log's name.
///
/// Each is the hash of one of our entries: first those that `theirs` does not have, then the
/// others, newest first.
pub fn further_names(store: &Store, log: &LogName, ours: Oid, theirs: Oid) -> Result<Vec<LogName>, Error> {
    let (_, links) = chain::read_at(store, &log.reference(), ours)?;
    let known: BTreeSet<Oid> = history::since(store, theirs, None).unwrap_or_default().into_iter().collect();
    let (shared, own): (Vec<_>, Vec<_>) = links.iter().partition(|link| known.contains(&link.commit));
    let names = own.into_iter().chain(shared.into_iter().rev()).map(|link| LogName::with_entry(log.key(), link.hash));
    Ok(names.filter(|name| name != log).collect())
}

/// Renames a log. Fails without any change if another process appended to it.
pub fn rename(store: &Store, from: &LogName, to: &LogName) -> Result<(), Error> {
    let Some(head) = refs::read(store, &from.reference()).map_err(Error::Refs)? else { return Ok(()) };
    if refs::read(store, &to.reference()).map_err(Error::Refs)?.is_none() {
        refs::create(store, &to.reference(), head).map_err(Error::Refs)?;
    }
    // After a crash here, the log has both names. The new one is written to, and the next call
    // removes the old one.
    refs::delete(store, &from.reference(), head).map_err(Error::Refs)
}

/// Returns the last record of a run or thread in the private log of a key.
pub fn find(store: &Store, fingerprint: &str, about: impl Into<Subject>) -> Result<Option<Indexed>, Error> {
    let head = chain::tip(store, &format::log_ref(fingerprint))?;
    head.tree.map_or(Ok(None), |tree| record_in(store, tree, &about.into()))
}

/// Returns the last record of a run in a log that ends at `head`.
pub fn last(store: &Store, head: Oid, log: &LogName, run: &RunId) -> Result<Option<LogRecorded>, Error> {
    let indexed = record_in(store, store.commit(head)?.0, &run.clone().into())?;
    indexed.map(|indexed| indexed.about_run(log.key().to_owned()).ok_or(Error::Record)).transpose()
}

/// Returns the logs here that name a run: those of this repository, and fetched ones of a key.
///
/// Fetched logs of other keys do not count. Of a fetched log, the latest entry that the key signed
/// counts.
pub fn witnesses(store: &Store, fingerprint: &str, run: &RunId) -> Result<Vec<String>, Error> {
    let (mut names, about) = (Vec::new(), Subject::from(run.clone()));
    for (name, tip) in refs::list(store, format::REFS).map_err(Error::Refs)? {
        let is_fetched = Place::fetched_of(&name, place::Kind::Log).is_some();
        let log = name.rsplit('/').next().and_then(LogName::decode).filter(|_| is_fetched);
        if !log.map_or(!is_fetched && name.starts_with(format::LOG_REFS), |log| log.key() == fingerprint) {
            continue;
        }
        let tree = if is_fetched { signed_tree(store, fingerprint, tip) } else { chain::tip(store, &name)?.tree };
        if let Some(tree) = tree
            && record_in(store, tree, &about)?.is_some()
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the tree of the latest entry that a key signed, among those that end at `tip`.
fn signed_tree(store: &Store, fingerprint: &str, tip: Oid) -> Option<Oid> {
    let mut commits = history::since(store, tip, None).ok()?.into_iter().filter_map(|at| chain::decode(store, at).ok());
    commits.find(|entry| is_signed_by(entry, fingerprint)).map(|entry| entry.tree)
}

fn is_signed_by(entry: &Decoded, fingerprint: &str) -> bool {
    sign::signer(&entry.payload, entry.signature.as_deref()).is_ok_and(|signer| signer == fingerprint)
}

/// Appends a record to the writer's private log, unless the last one covers it.
pub fn ensure(writer: &Writer, about: &Subject, recorded: &LogRecorded) -> Result<(), Error> {
    let fingerprint = writer.signer.fingerprint();
    retry::run(|| {
        let head = chain::tip(&writer.store, &format::log_ref(&fingerprint))?;
        let known = head.tree.map_or(Ok(None), |tree| record_in(&writer.store, tree, about))?;
        if known.is_some_and(|known| known.covers(recorded)) {
            return Ok(());
        }
        writer.append(&head, vec![draft(about.clone(), Event::LogRecorded(recorded.clone()))])?.publish()?;
        Ok(())
    })
}

/// Appends a statement about another writer's run to the private log.
pub fn record_statement(writer: &Writer, run: &RunId, event: &Event) -> Result<(), Error> {
    let fingerprint = writer.signer.fingerprint();
    retry::run(|| {
        let head = chain::tip(&writer.store, &format::log_ref(&fingerprint))?;
        writer.append(&head, vec![draft(run.clone().into(), event.clone())])?.publish()?;
        Ok(())
    })
}

/// Returns true for a statement about another writer's run. Statements in two clones may differ.
pub fn is_statement(event: &Event) -> bool {
    matches!(event, Event::LogDecided(_) | Event::LogWritten(_))
}

fn record_in(store: &Store, tree: Oid, about: &Subject) -> Result<Option<Indexed>, Error> {
    let Some(path) = log_recorded::path(about) else { return Ok(None) };
    let Some(blob) = store.blob_at(tree, &path)? else { return Ok(None) };
    serde_json::from_slice(&store.read_blob(blob)?).map(Some).map_err(|_| Error::Record)
}

errors! {
    /// An error in reading or writing a log.
    #[derive(Debug, thiserror::Error)] pub enum Error = "log";
    Chain(#[from] chain::Error): "cannot read or write the repository log";
    Store(#[from] store::Error): "cannot read or write the repository log";
    Refs(#[source] refs::Error): "cannot list the refs";
    Record: "cannot read the run's record in the repository log";
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_lost())
    }
}
