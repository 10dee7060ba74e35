//! Whether a chain that comes from elsewhere may come to stand at a ref: what its commits alone show, and no tree or blob.
//!
//! Only who holds the keys that may write a chain can make it longer here. What is wrong with it besides, its rows say.

use std::collections::BTreeMap;

use crate::git::store::Store;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{ArchivedRun, Entry, Event};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};
use crate::model::role::Keys;

use super::objects::Objects;
use super::order::{self, Parents};
use super::reader::{Back, Link, Walk, short};
use super::signature::{Signed, Writers};

/// What a ref is to hold the chain of.
#[derive(Clone, Copy, Debug)]
pub enum Chain<'a> {
    /// A run.
    Run(&'a RunId),
    /// A thread.
    Thread(&'a ThreadId),
    /// A repository log.
    Log(&'a LogName),
    /// An archive.
    Archive(&'a LogName),
}

/// Says why the chain that ends at `tip` must not come to stand where `chain` belongs; an error is the first reason.
///
/// Every commit is an entry, of this chain, in its place, linked to the one before; each is signed by a key that may write it:
/// a run's by one that has the role, a thread's by that of entry 0, a log's or an archive's by the one that it is named after; nothing
/// follows a seal; and each run in an archive is such a chain itself, and sealed. It goes on from `known`, if there is one: a head that came through here before, whose signatures were checked.
pub fn received(store: &Store, chain: Chain<'_>, known: Option<Oid>, tip: Oid) -> Result<(), String> {
    let links = walk(store, known, tip)?;
    let mut before = None;
    for link in &links {
        place(chain, link, before)?;
        before = Some(link);
    }
    if let Chain::Log(name) | Chain::Archive(name) = chain
        && !name.fits(links.iter().map(|link| link.hash))
    {
        return Err("it has not the entry that its name says".into());
    }
    // A thread's first entry may have it as a parent that is another chain's, as git sees it.
    match known {
        Some(known) if links.iter().all(|link| link.commit != known) => {
            return Err(format!("it begins anew on commit {}", short(known)));
        }
        _ => signatures(store, chain, &links)?,
    }
    match chain {
        Chain::Archive(_) => archived(store, &links),
        _ => Ok(()),
    }
}

/// Makes sure that each run that comes to an archive by entries that are not vouched for may come to stand at a ref of its own, and is
/// sealed there; and that the archive says of no run two different things.
fn archived(store: &Store, links: &[Link]) -> Result<(), String> {
    let mut held: BTreeMap<&RunId, (Oid, Digest)> = BTreeMap::new();
    for link in links {
        let Event::ArchiveAdded(added) = &link.entry.event else { continue };
        for (run, archived) in &added.runs {
            let says = (archived.commit, archived.seal);
            let known = *held.entry(run).or_insert(says);
            if known != says {
                return Err(format!("entry {} says of run {:?} what it did not before", link.entry.seq, run.as_str()));
            }
            if link.vouched {
                continue;
            }
            let why = |why| format!("run {:?}, which it holds: {why}", run.as_str());
            received(store, Chain::Run(run), None, archived.commit).map_err(why)?;
            sealed(store, archived).map_err(why)?;
            stamped(store, run, archived, link.tree).map_err(why)?;
        }
    }
    Ok(())
}

/// Makes sure that an archive's tree has the time stamps that its entry names: nothing else keeps them.
fn stamped(store: &Store, run: &RunId, archived: &ArchivedRun, tree: Oid) -> Result<(), String> {
    let Some(stamps) = archived.stamps else { return Ok(()) };
    let found = store.tree_at(tree, &format::archived_stamps_path(run)).map_err(|error| in_words(&error))?;
    if found == Some(stamps) { Ok(()) } else { Err("its time stamps are not where they belong".to_owned()) }
}

/// Makes sure that a run ends with the seal that an archive names.
fn sealed(store: &Store, archived: &ArchivedRun) -> Result<(), String> {
    let seal = Link::read(&Objects::new(store), archived.commit)?;
    if !matches!(seal.entry.event, Event::RunSealed(_)) {
        return Err("it is not sealed".to_owned());
    }
    if seal.hash == archived.seal { Ok(()) } else { Err("its seal is another".to_owned()) }
}

/// Reads the entries, oldest first; those up to a commit are vouched for.
fn walk(store: &Store, vouched: Option<Oid>, tip: Oid) -> Result<Vec<Link>, String> {
    // The parent of a first entry, if it has one, belongs to the chain that it was adopted or forked from.
    let walked = Walk { vouched, ..Walk::new(Back::ToFirstEntry) }.read(store, tip);
    match walked.stop {
        Some(stop) => Err(stop.to_string()),
        None => walked.commits.into_iter().map(|commit| commit.map(|link| *link)).collect(),
    }
}

/// Holds an entry against the chain that it is to be of, and against the entry before it.
fn place(chain: Chain<'_>, link: &Link, before: Option<&Link>) -> Result<(), String> {
    let Entry { seq, event, about, .. } = &link.entry;
    let first = before.is_none();
    let (of_it, belongs) = match chain {
        Chain::Run(run) => {
            let begins = matches!(event, Event::RunSubmitted(_));
            (about.run() == Some(run), event.is_of_run() && begins == first)
        }
        Chain::Thread(thread) => (about.thread() == Some(thread), event.kind().starts_with("thread.")),
        Chain::Log(name) => (event.log().is_none_or(|log| log == name.key()), event.log().is_some()),
        Chain::Archive(name) => {
            let begins = matches!(event, Event::ArchiveAdded(added) if added.runs.is_empty());
            (about.as_str() == name.key(), matches!(event, Event::ArchiveAdded(_)) && begins == first)
        }
    };
    if !belongs {
        return Err(format!("entry {seq} is {}, which has no place there", event.kind()));
    }
    if !of_it {
        return Err(match event.log() {
            Some(log) => format!("entry {seq} is of another log, {log:?}"),
            None => format!("entry {seq} is of another, {:?}", about.as_str()),
        });
    }
    if let Some((_, fault)) = order::faults(link, before, Parents::Named).next() {
        return Err(fault);
    }
    match before.map(|before| &before.entry) {
        Some(Entry { seq: seal, event: Event::RunSealed(_), .. }) => {
            Err(format!("entry {seq} follows the seal, entry {seal}"))
        }
        _ => Ok(()),
    }
}

/// Makes sure that each entry that is not vouched for is signed by a key that may write the chain.
fn signatures(store: &Store, chain: Chain<'_>, links: &[Link]) -> Result<(), String> {
    let Some(first) = links.first() else { return Err("it holds no entry".into()) };
    let owner;
    let mut writers = match (chain, &first.entry.event) {
        (Chain::Run(run), Event::RunSubmitted(e)) => Writers::of_run(run, Keys::of(e), Some(first.hash)),
        (Chain::Log(name) | Chain::Archive(name), _) => Writers::of(name.key()),
        // Whose thread it is, nobody vouches for.
        _ => {
            owner = Signed::of(&*Link::read(&Objects::new(store), first.commit)?).key()?.to_owned();
            Writers::of(&owner)
        }
    };
    for link in links {
        let signed = Signed::of(link);
        // Of what is vouched for, it only counts whom it admits.
        if link.vouched {
            writers.vouched(&signed);
            continue;
        }
        writers.refuses(&signed, signed.key()?, None).map_or(Ok(()), |(_, why)| Err(why))?;
        writers.said(&signed).transpose().map_err(|why| format!("entry {}: {why}", signed.seq))?;
    }
    Ok(())
}
