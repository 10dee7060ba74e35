//! The repository logs: append-only chains per writer over all the runs it submitted and sealed.
//!
//! The private log of a key holds everything and never travels. What of it concerns a run is appended to a log that travels when
//! that run is first pushed or anchored, so that a push tells nobody of other runs.
//!
//! The private log is written after the run's own ref and can be rebuilt from it, so a crash in between loses nothing: the next
//! `run` or `doctor` appends what is missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::codec::Decoded;
use crate::git::race::{self, Lost};
use crate::git::store::{Edit, Kept, Store};
use crate::git::{history, refs, store};
use crate::ledger::chain::{self, Draft, Head, Link, Writer};
use crate::ledger::sign;
use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::log_record;
pub use crate::model::log_record::Record;
use crate::model::name::RunId;
use crate::model::place::{self, Place};
use crate::model::time::Moment;

/// Returns the logs of this repository that travel, whoever wrote them.
pub fn travelling(store: &Store) -> Result<Vec<LogName>, Error> {
    let listed = refs::list(store, format::LOG_REFS).map_err(Error::Refs)?;
    let names = listed.iter().filter_map(|(name, _)| LogName::decode(name.strip_prefix(format::LOG_REFS)?));
    Ok(names.filter(LogName::is_further).collect())
}

/// A log that travels with entries that are written and that no ref shows yet.
#[must_use = "nothing has happened until the log is published"]
pub struct Extension {
    /// The log.
    pub name: LogName,
    /// Its new head.
    pub head: Oid,
    old: Option<Oid>,
    kept: Kept,
}

/// An event with the moment at which the key first said it.
#[derive(Clone, Debug)]
pub struct Dated {
    /// When, by the key's own word.
    pub at: Moment,
    /// What, without `made`.
    pub event: Event,
}

impl Dated {
    /// Takes an event out of an entry.
    pub fn of(entry: &Entry) -> Self {
        Self { at: entry.event.made().unwrap_or(entry.at), event: entry.event.clone().with_made(None) }
    }
}

/// Writes events onto a log of the writer's key that ends at a commit, or onto a new one, each about a run or a thread. Each keeps its
/// moment. Where the log has later ones, the entry is dated as the last of those, and a statement says itself when it was made.
///
/// A new one is named after one of its entries, the first of which no other log here has the name.
pub fn extend(
    writer: &Writer,
    log: Option<(&LogName, Oid)>,
    events: Vec<(Subject, Dated)>,
) -> Result<Extension, Error> {
    let head = match log {
        Some((name, head)) => chain::tip_at(&writer.store, &name.reference(), head)?,
        None => Head::unborn(String::new()),
    };
    let (kept, links) = writer.append_dated(&head, dated(head.at, events.clone()))?.place()?;
    if let Some((name, _)) = log {
        return Ok(Extension::of(name.clone(), &head, kept, &links));
    }
    if let Some(name) = free_name(writer, &links)? {
        return Ok(Extension::of(name, &head, kept, &links));
    }
    // Another log of the key has all these entries: dated now, they are other ones.
    let now = writer.clock.now();
    let now = |(about, event): (Subject, Dated)| {
        let made = (event.at < now).then_some(event.at);
        (now, draft(about, event.event.with_made(made)))
    };
    let (kept, links) = writer.append_dated(&head, events.into_iter().map(now).collect())?.place()?;
    let name = LogName::apart(&writer.signer.fingerprint(), first_of(&links).hash);
    Ok(Extension::of(name, &head, kept, &links))
}

/// Returns entries to be, each dated as it was first said, or as the last one before it where that is later.
fn dated(mut last: Option<Moment>, events: Vec<(Subject, Dated)>) -> Vec<(Moment, Draft)> {
    let date = |(about, Dated { at, event }): (Subject, Dated)| {
        let made = last.is_some_and(|last| at < last).then_some(at);
        last = last.max(Some(at));
        (at, draft(about, event.with_made(made)))
    };
    events.into_iter().map(date).collect()
}

/// Returns the name of a new log: that of its first entry of which no log here is called.
fn free_name(writer: &Writer, links: &[Link]) -> Result<Option<LogName>, Error> {
    let fingerprint = writer.signer.fingerprint();
    for link in links {
        let name = LogName::apart(&fingerprint, link.hash);
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
    fn of(name: LogName, head: &Head, kept: Kept, links: &[Link]) -> Self {
        let last = links.last().expect("a log is extended by something to say");
        Self { name, head: last.commit, old: head.commit, kept }
    }

    /// Moves the log's ref to the new head; an error says that another process appended first.
    pub fn publish(self, store: &Store) -> Result<(), Error> {
        let name = self.name.reference();
        let moved = match self.old {
            None => refs::begin(store, &name, self.head),
            Some(old) => refs::advance(store, &name, old, self.head),
        };
        moved.map_err(|error| match error {
            refs::Error::LostRace(name) => Error::Chain(chain::Error::LostRace(name)),
            other => Error::Refs(other),
        })?;
        self.kept.put_back().map_err(store::Error::Pack)?;
        Ok(())
    }
}

/// Returns the entry of an event of a log, with what it changes in the tree.
fn draft(about: Subject, event: Event) -> Draft {
    let edit = match (&about, &event) {
        (Subject::Run(run), Event::LogDecided(said)) => {
            Some((format::decided_path(run, &said.item), Edit::Bytes(said.canonical())))
        }
        (Subject::Run(run), Event::LogWritten(said)) => {
            Some((format::written_path(run, &said.name), Edit::Blob(said.oid)))
        }
        _ => Record::of_event(&about, &event)
            .and_then(|record| Some((log_record::path(&about)?, Edit::Bytes(record.canonical())))),
    };
    Draft { about, event, edits: edit.into_iter().collect() }
}

/// Returns the entries of the private log of a key, oldest first.
pub fn private(store: &Store, fingerprint: &str) -> Result<Vec<Link>, Error> {
    let read = chain::read(store, &format::log_ref(fingerprint))?;
    Ok(read.map_or_else(Vec::new, |(_, links)| links))
}

/// Returns the name under which our log, which ends at `ours`, can stand beside one that has the same name elsewhere and goes on from it no
/// more.
///
/// `theirs` is the head of that one, whose commits must be here. None where it is not by the same key, or where each says of a run or
/// thread what the other does not: that is no other clone's log, but one of two stories. One that knows less of it tells no other.
pub fn apart(store: &Store, log: &LogName, ours: Oid, theirs: Oid) -> Result<Option<LogName>, Error> {
    let (own, other) = (history::since(store, ours, None)?, history::since(store, theirs, None)?);
    let known: BTreeSet<&Oid> = other.iter().collect();
    let fork = own.iter().find(|commit| known.contains(commit)).copied();
    let mut said: BTreeMap<Subject, Vec<Event>> = BTreeMap::new();
    for commit in other.iter().take_while(|commit| Some(**commit) != fork) {
        let Ok(entry) = chain::decode(store, *commit) else { return Ok(None) };
        if !is_signed_by(&entry, log.key()) {
            return Ok(None);
        }
        if !is_statement(&entry.entry.event) {
            said.entry(entry.entry.about).or_default().push(entry.entry.event);
        }
    }
    let (mut first, mut own_words) = (None, BTreeMap::<Subject, Vec<Event>>::new());
    for commit in own.iter().take_while(|commit| Some(**commit) != fork) {
        let entry = chain::decode(store, *commit)?;
        first = Some(entry.hash);
        if !is_statement(&entry.entry.event) {
            own_words.entry(entry.entry.about).or_default().push(entry.entry.event);
        }
    }
    let within = |some: &[Event], all: &[Event]| some.iter().all(|event| all.contains(event));
    let agree = |(about, ours): (&Subject, &Vec<Event>)| {
        said.get(about).is_none_or(|theirs| within(theirs, ours) || within(ours, theirs))
    };
    if !own_words.iter().all(agree) {
        return Ok(None);
    }
    Ok(first.map(|first| LogName::apart(log.key(), first)))
}

/// Returns the names that our log, which ends at `ours`, can take where what lies under its own elsewhere is no log of its key, the best first.
///
/// Each is that of an entry of ours: of the first that `theirs` has not, as far as it is here, and those after it; then of the
/// others, the last first.
pub fn further_names(store: &Store, log: &LogName, ours: Oid, theirs: Oid) -> Result<Vec<LogName>, Error> {
    let (_, links) = chain::read_at(store, &log.reference(), ours)?;
    let known: BTreeSet<Oid> = history::since(store, theirs, None).unwrap_or_default().into_iter().collect();
    let (shared, own): (Vec<_>, Vec<_>) = links.iter().partition(|link| known.contains(&link.commit));
    let names = own.into_iter().chain(shared.into_iter().rev()).map(|link| LogName::apart(log.key(), link.hash));
    Ok(names.filter(|name| name != log).collect())
}

/// Gives a log another name; what was appended to it meanwhile is an error, and nothing has changed then.
pub fn rename(store: &Store, from: &LogName, to: &LogName) -> Result<(), Error> {
    let Some(head) = refs::read(store, &from.reference()).map_err(Error::Refs)? else { return Ok(()) };
    if refs::read(store, &to.reference()).map_err(Error::Refs)?.is_none() {
        refs::create(store, &to.reference(), head).map_err(Error::Refs)?;
    }
    // A crash here leaves the log under both names, and the new one is the one that is written: the old one makes way next time.
    refs::delete(store, &from.reference(), head).map_err(Error::Refs)
}

/// Returns the last that the private log of a key holds about a run or a thread.
pub fn find(store: &Store, fingerprint: &str, about: impl Into<Subject>) -> Result<Option<Record>, Error> {
    let head = chain::tip(store, &format::log_ref(fingerprint))?;
    head.tree.map_or(Ok(None), |tree| record_in(store, tree, &about.into()))
}

/// Returns the logs here that name a run: those of this repository, and the fetched ones of a key. The fetched logs of other keys
/// take no name from us.
///
/// Of what was fetched counts the latest entry that the key signed: what somebody else put on top says nothing.
pub fn witnesses(store: &Store, fingerprint: &str, run: &RunId) -> Result<Vec<String>, Error> {
    let (mut named, about) = (Vec::new(), Subject::from(run.clone()));
    for (name, tip) in refs::list(store, format::REFS).map_err(Error::Refs)? {
        let is_fetched = Place::fetched_of(&name, place::Kind::Log).is_some();
        let is_of_key = || {
            let log = name.rsplit('/').next().and_then(LogName::decode);
            log.is_some_and(|log| log.key() == fingerprint)
        };
        if !(if is_fetched { is_of_key() } else { name.starts_with(format::LOG_REFS) }) {
            continue;
        }
        let tree = if is_fetched { signed_tree(store, fingerprint, tip) } else { chain::tip(store, &name)?.tree };
        if let Some(tree) = tree
            && record_in(store, tree, &about)?.is_some()
        {
            named.push(name);
        }
    }
    Ok(named)
}

/// Returns the tree of the latest entry that a key signed of those that end at `tip`.
fn signed_tree(store: &Store, fingerprint: &str, tip: Oid) -> Option<Oid> {
    let mut commits = history::since(store, tip, None).ok()?.into_iter().filter_map(|at| chain::decode(store, at).ok());
    commits.find(|entry| is_signed_by(entry, fingerprint)).map(|entry| entry.tree)
}

fn is_signed_by(entry: &Decoded, fingerprint: &str) -> bool {
    sign::signer(&entry.payload, entry.signature.as_deref()).is_ok_and(|signer| signer == fingerprint)
}

/// Appends a record to the writer's private log unless what stands there leaves nothing to say.
pub fn ensure(writer: &Writer, record: &Record) -> Result<(), Error> {
    let (fingerprint, about) = (writer.signer.fingerprint(), record.about());
    race::run(|| {
        let head = chain::tip(&writer.store, &format::log_ref(&fingerprint))?;
        let known = head.tree.map_or(Ok(None), |tree| record_in(&writer.store, tree, &about))?;
        if known.is_some_and(|known| known.covers(record)) {
            return Ok(());
        }
        writer.append(&head, vec![draft(about.clone(), record.event(fingerprint.clone()))])?.publish()?;
        Ok(())
    })
}

/// Appends to the writer's private log what its key says of a run that somebody else conducts.
pub fn say(writer: &Writer, run: &RunId, event: &Event) -> Result<(), Error> {
    let fingerprint = writer.signer.fingerprint();
    race::run(|| {
        let head = chain::tip(&writer.store, &format::log_ref(&fingerprint))?;
        writer.append(&head, vec![draft(run.clone().into(), event.clone())])?.publish()?;
        Ok(())
    })
}

/// Whether an entry is about what its key says of others' runs: two clones say different things of one, and neither is wrong.
pub fn is_statement(event: &Event) -> bool {
    matches!(event, Event::LogDecided(_) | Event::LogWritten(_))
}

fn record_in(store: &Store, tree: Oid, about: &Subject) -> Result<Option<Record>, Error> {
    let Some(path) = log_record::path(about) else { return Ok(None) };
    let Some(blob) = store.blob_at(tree, &path)? else { return Ok(None) };
    Record::parse(&store.read_blob(blob)?).filter(|record| record.about() == *about).map(Some).ok_or(Error::Record)
}

/// What can go wrong with a repository log.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the repository log could not be read or written")]
    Chain(#[from] chain::Error),
    #[error("the repository log could not be read or written")]
    Store(#[from] store::Error),
    #[error("the refs could not be listed")]
    Refs(#[source] refs::Error),
    #[error("what the repository log holds about the run cannot be read")]
    Record,
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_lost())
    }
}
