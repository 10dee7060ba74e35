//! Decides whether an incoming chain may be stored at a ref, from its commits alone.
//!
//! Only holders of the keys that may write a chain can extend it here. The rows of `verify` report
//! all other faults.

use std::collections::BTreeMap;

use crate::git::bounded_read;
use crate::git::store::Store;
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{ArchivedRun, Entry, Event};
use crate::model::files;
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::{ItemId, RunId, ThreadId};
use crate::model::role::Keys;

use super::entry_order::{self, Parents};
use super::objects::Objects;
use super::reader::{Extent, Link, Walk, short};
use super::signature::{Signed, Writers};

/// The chain that a ref is to hold.
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

/// Checks that the chain that ends at `tip` may be stored as `chain`; returns the first fault.
///
/// Every commit must be an entry of this chain, in its place, and linked to the one before. Its key
/// must be allowed to sign it: by role in a run, by entry 0 in a thread, by name in a log or
/// archive. Nothing may follow a seal. Each run in an archive must itself pass, and be sealed. The
/// chain must contain `known`, a head that passed before, if there is one.
pub fn check_incoming(store: &Store, chain: Chain<'_>, known: Option<Oid>, tip: Oid) -> Result<(), String> {
    let links = read_links(store, known, tip)?;
    let mut before = None;
    for link in &links {
        check_place(chain, link, before)?;
        before = Some(link);
    }
    if let Chain::Log(name) | Chain::Archive(name) = chain
        && !name.fits(links.iter().map(|link| link.hash))
    {
        return Err("it does not contain the entry in its name".into());
    }
    // To git, the first entry of a thread may have a parent in another chain.
    match known {
        Some(known) if links.iter().all(|link| link.commit != known) => {
            return Err(format!("it starts a new chain on commit {}", short(known)));
        }
        _ => check_signatures(store, chain, &links)?,
    }
    match chain {
        Chain::Run(_) => {
            let (repo, mut new) = (store.local(), links.iter().filter(|link| !link.verified_before));
            new.try_for_each(|link| check_files(store, &repo, link))
        }
        Chain::Archive(_) => check_archived_runs(store, &links),
        Chain::Thread(_) | Chain::Log(_) => Ok(()),
    }
}

/// Checks that the tree of an entry of a run has exactly the bytes that the entry names, so that
/// git keeps and sends these, and nothing else; and that what `verify` reads whole is within its
/// limits. Missing bytes are no fault here.
fn check_files(store: &Store, repo: &gix::Repository, link: &Link) -> Result<(), String> {
    let files = link.entry.event.files();
    for (path, product) in &files {
        if let Some(most) = files::most_bytes(path) {
            bounded_read::within(repo, product.oid, most).map_err(|error| in_words(&error))?;
        }
    }
    // Each batch is discarded with the trees that it holds.
    let expected = if files.is_empty() { Ok(store.empty_tree()) } else { store.batch().tree_of(files) };
    let expected = expected.map_err(|error| in_words(&error))?;
    if link.tree == expected {
        return Ok(());
    }
    Err(format!("the tree of entry {} does not have exactly what the entry names", link.entry.seq))
}

/// An entry that another writer appended, with the key that signed it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the types say it")]
pub struct Further {
    pub commit: Oid,
    pub tree: Oid,
    pub hash: Digest,
    pub entry: Entry,
    pub key: String,
}

/// Reads the entries of a run after `known`, which was read and checked before, up to `tip`.
///
/// Each must be in its place and signed by a key that may append it. The rest is checked against
/// the state that it follows, by [`super::check_next`]. `first` is the leaf hash of
/// entry 0, and `keys` are the keys at `known`. The cost is in proportion to the new entries.
pub fn read_further(
    store: &Store,
    run: &RunId,
    first: Digest,
    keys: &Keys,
    known: Oid,
    tip: Oid,
) -> Result<Vec<Further>, String> {
    let walked = Walk::new(Extent::After(known)).read(store, tip);
    if let Some(stop) = walked.stop {
        return Err(stop.to_string());
    }
    let links = walked.commits.into_iter().map(|commit| commit.map(|link| *link)).collect::<Result<Vec<_>, _>>()?;
    let last = *Link::read(&Objects::new(store), known)?;
    if links.first().is_some_and(|link| link.parents.first() != Some(&known)) {
        return Err(format!("it does not continue commit {}", short(known)));
    }
    let mut writers = Writers::of_run(run, keys.clone(), Some(first));
    let mut before = &last;
    let mut further = Vec::with_capacity(links.len());
    let repo = store.local();
    for link in &links {
        check_place(Chain::Run(run), link, Some(before))?;
        check_files(store, &repo, link)?;
        before = link;
        let signed = Signed::from_link(link);
        let key = signed.key()?.to_owned();
        writers.refuse(&signed, &key, None).map_or(Ok(()), |(_, why)| Err(why))?;
        writers.statement(&signed).transpose().map_err(|why| format!("entry {}: {why}", signed.seq))?;
        let Link { commit, tree, hash, entry, .. } = link;
        let entry = entry.clone();
        further.push(Further { commit: *commit, tree: *tree, hash: *hash, entry, key });
    }
    Ok(further)
}

/// Returns the keys that dispatched the running attempts that drivers hold, for those items whose
/// key `keys` does not know. Reads back from `tip` until all are found.
pub fn dispatchers(store: &Store, keys: &Keys, tip: Oid) -> Result<BTreeMap<ItemId, String>, String> {
    let mut missing = keys.unknown_dispatchers();
    let (mut found, mut next) = (BTreeMap::new(), Some(tip));
    let objects = Objects::new(store);
    while let Some(commit) = next.filter(|_| !missing.is_empty()) {
        let link = Link::read(&objects, commit)?;
        if let Event::ItemFired(e) = &link.entry.event
            && missing.remove(&e.item)
        {
            found.insert(e.item.clone(), Signed::from_link(&link).key()?.to_owned());
        }
        next = link.parents.first().copied().filter(|_| link.entry.prev.is_some());
    }
    Ok(found)
}

/// Checks each run that new entries add to an archive: it could have a ref of its own and is
/// sealed. Also rejects an archive that names two different chains for one run.
fn check_archived_runs(store: &Store, links: &[Link]) -> Result<(), String> {
    let mut archived_heads: BTreeMap<&RunId, (Oid, Digest)> = BTreeMap::new();
    for link in links {
        let Event::ArchiveAdded(added) = &link.entry.event else { continue };
        for (run, archived) in &added.runs {
            let head = (archived.commit, archived.seal);
            let known = *archived_heads.entry(run).or_insert(head);
            if known != head {
                return Err(format!("entry {} says otherwise of run {:?} than before", link.entry.seq, run.as_str()));
            }
            if link.verified_before {
                continue;
            }
            let why = |why| format!("run {:?}, which it holds: {why}", run.as_str());
            check_incoming(store, Chain::Run(run), None, archived.commit).map_err(why)?;
            check_seal(store, archived).map_err(why)?;
            check_stamps(store, run, archived, link.tree).map_err(why)?;
        }
    }
    Ok(())
}

/// Checks that an archive's tree holds the time stamps that its entry names. Nothing else keeps
/// them.
fn check_stamps(store: &Store, run: &RunId, archived: &ArchivedRun, tree: Oid) -> Result<(), String> {
    let Some(stamps) = archived.stamps else { return Ok(()) };
    let found = store.tree_at(tree, &format::archived_stamps_path(run)).map_err(|error| in_words(&error))?;
    if found == Some(stamps) { Ok(()) } else { Err("its time stamps are not in the tree of the archive".to_owned()) }
}

/// Checks that a run ends with the seal that the archive names.
fn check_seal(store: &Store, archived: &ArchivedRun) -> Result<(), String> {
    let seal = Link::read(&Objects::new(store), archived.commit)?;
    if !matches!(seal.entry.event, Event::RunSealed(_)) {
        return Err("it is not sealed".to_owned());
    }
    if seal.hash == archived.seal { Ok(()) } else { Err("its seal differs".to_owned()) }
}

fn read_links(store: &Store, verified_before: Option<Oid>, tip: Oid) -> Result<Vec<Link>, String> {
    // The parent of a first entry belongs to the chain that it was adopted or forked from.
    let walked = Walk { verified_before, ..Walk::new(Extent::ToFirstEntry) }.read(store, tip);
    match walked.stop {
        Some(stop) => Err(stop.to_string()),
        None => walked.commits.into_iter().map(|commit| commit.map(|link| *link)).collect(),
    }
}

/// Checks that an entry belongs to the chain and follows the entry before it.
fn check_place(chain: Chain<'_>, link: &Link, before: Option<&Link>) -> Result<(), String> {
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
            None => format!("entry {seq} belongs to {:?}", about.as_str()),
        });
    }
    if let Some(fault) = entry_order::faults(link, before, Parents::Named).next() {
        return Err(fault);
    }
    match before.map(|before| &before.entry) {
        Some(Entry { seq: seal, event: Event::RunSealed(_), .. }) => {
            Err(format!("entry {seq} follows the seal, entry {seal}"))
        }
        _ => Ok(()),
    }
}

/// Checks that each entry was verified before, or is signed by a key that may write the chain.
fn check_signatures(store: &Store, chain: Chain<'_>, links: &[Link]) -> Result<(), String> {
    let Some(first) = links.first() else { return Err("it holds no entry".into()) };
    let owner;
    let mut writers = match (chain, &first.entry.event) {
        (Chain::Run(run), Event::RunSubmitted(e)) => Writers::of_run(run, Keys::from_submitted(e), Some(first.hash)),
        (Chain::Log(name) | Chain::Archive(name), _) => Writers::Owner(name.key()),
        // The key of entry 0 owns the thread.
        _ => {
            owner = Signed::from_link(&*Link::read(&Objects::new(store), first.commit)?).key()?.to_owned();
            Writers::Owner(&owner)
        }
    };
    for link in links {
        let signed = Signed::from_link(link);
        // Entries that were verified before only count for the keys that they admit.
        if link.verified_before {
            writers.admit_verified(&signed);
            continue;
        }
        writers.refuse(&signed, signed.key()?, None).map_or(Ok(()), |(_, why)| Err(why))?;
        writers.statement(&signed).transpose().map_err(|why| format!("entry {}: {why}", signed.seq))?;
    }
    Ok(())
}
