//! Whether a chain that comes from elsewhere may come to stand at a ref: what its commits alone show, and no tree or blob.
//!
//! Only who holds the keys that may write a chain can make it longer here. What is wrong with it besides, its rows say.

use crate::git::codec::{self, Decoded};
use crate::git::store::Store;
use crate::model::bounds::Meter;
use crate::model::digest::Oid;
use crate::model::entry::{Entry, Event};
use crate::model::log_name::LogName;
use crate::model::name::{RunId, ThreadId};
use crate::model::printable::cut;

use super::objects::{Objects, each};
use super::order::{self, End};
use super::reader::{short, signer};

/// What a ref is to hold the chain of.
#[derive(Clone, Copy, Debug)]
pub enum Chain<'a> {
    /// A run.
    Run(&'a RunId),
    /// A thread.
    Thread(&'a ThreadId),
    /// A repository log.
    Log(&'a LogName),
}

/// A commit and the entry in it.
struct Link {
    commit: Oid,
    decoded: Decoded,
}

/// Says why the chain that ends at `tip` must not come to stand where `chain` belongs; an error is the first reason.
///
/// Every commit is an entry, of this chain, in its place, linked to the one before; each is signed by a key that may write it:
/// a run's by one that entry 0 names, a thread's by that of entry 0, a log's by the one that the log is named after; nothing
/// follows a seal. It goes on from `known`, if there is one: a head that came through here before, whose signatures were checked.
pub fn received(store: &Store, chain: Chain<'_>, known: Option<Oid>, tip: Oid) -> Result<(), String> {
    let links = walk(store, tip)?;
    let mut before: Option<&Link> = None;
    for link in &links {
        place(chain, link, before)?;
        before = Some(link);
    }
    if let Chain::Log(name) = chain
        && !name.fits(links.iter().map(|link| link.decoded.hash))
    {
        return Err("it has not the entry that its name says".into());
    }
    let checked = match known {
        // A thread's first entry may have it as a parent that is another chain's, as git sees it.
        Some(known) => match links.iter().position(|link| link.commit == known) {
            Some(at) => at + 1,
            None => return Err(format!("it begins anew on commit {}", short(known))),
        },
        None => 0,
    };
    signatures(store, chain, &links, checked)
}

/// Reads the entries, oldest first.
fn walk(store: &Store, tip: Oid) -> Result<Vec<Link>, String> {
    let objects = Objects::new(store);
    let (mut links, mut meter) = (Vec::new(), Meter::default());
    let mut next = Some(tip);
    while let Some(commit) = next {
        let raw = objects.commit(commit, &mut meter).map_err(|fault| fault.to_string())?;
        let decoded = codec::decode(&raw).map_err(|error| cut(format!("commit {}: {error}", short(commit))))?;
        // The parent of a first entry, if it has one, belongs to the chain that it was adopted or forked from.
        next = decoded.entry.prev.and_then(|_| decoded.parents.first().copied());
        links.push(Link { commit, decoded });
    }
    links.reverse();
    Ok(links)
}

/// Holds an entry against the chain that it is to be of, and against the entry before it.
fn place(chain: Chain<'_>, link: &Link, before: Option<&Link>) -> Result<(), String> {
    let Decoded { entry, parents, .. } = &link.decoded;
    let Entry { seq, event, about, .. } = entry;
    let first = before.is_none();
    let (of_it, belongs) = match chain {
        Chain::Run(run) => {
            let begins = matches!(event, Event::RunSubmitted(_));
            (about.run() == Some(run), event.is_of_run() && begins == first)
        }
        Chain::Thread(thread) => (about.thread() == Some(thread), event.kind().starts_with("thread.")),
        Chain::Log(name) => (event.log().is_none_or(|log| log == name.key()), event.log().is_some()),
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
    let named = before.map(|before| before.commit).into_iter().chain(event.further_parent());
    let strange = !named.eq(parents.iter().copied());
    let strange = strange.then(|| format!("entry {seq} has other parents than it says"));
    let end = before.map(|before| End::of(&before.decoded.entry, before.decoded.hash));
    if let Some(fault) = order::faults(entry, end, strange).next() {
        return Err(fault);
    }
    match before.map(|before| &before.decoded.entry) {
        Some(Entry { seq: seal, event: Event::RunSealed(_), .. }) => {
            Err(format!("entry {seq} follows the seal, entry {seal}"))
        }
        _ => Ok(()),
    }
}

/// Checks the signatures from an entry on, each by a key that may write the chain.
fn signatures(store: &Store, chain: Chain<'_>, links: &[Link], from: usize) -> Result<(), String> {
    let Some(first) = links.first() else { return Err("it holds no entry".into()) };
    let writers = match (chain, &first.decoded.entry.event) {
        (Chain::Run(_), Event::RunSubmitted(e)) => e.writers.clone(),
        (Chain::Log(name), _) => vec![name.key().to_owned()],
        _ => vec![signer(&first.decoded).map_err(|why| format!("entry 0: {why}"))?],
    };
    let unchecked = &links[from..];
    for (link, key) in unchecked.iter().zip(each(store, unchecked, |_, link| signer(&link.decoded))) {
        let seq = link.decoded.entry.seq;
        let key = key.map_err(|why| format!("entry {seq}: {why}"))?;
        if !writers.contains(&key) {
            return Err(format!("entry {seq} is signed by {key}, which may not write there"));
        }
    }
    Ok(())
}
