//! The chain of entries: append, publish, read.
//!
//! An append only writes objects. [`Appended::publish`] makes them visible by swapping one ref. A
//! crash before that leaves objects that git prunes once their `.keep` file is gone.

use serde_json::Value;

use crate::clock::Clock;
use crate::git::codec;
use crate::git::history;
use crate::git::refs;
use crate::git::retry::Lost;
use crate::git::store::{self, Batch, Edit, KeepGuard, Store};
use crate::ledger::sign::{self, Signer};
use crate::model::any_error::AnyError;
use crate::model::bounds::{self, Meter};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, Subject};
use crate::model::time::Moment;

/// The surroundings of an append.
#[derive(Clone)]
pub struct Writer {
    /// The store for objects and refs.
    pub store: Store,
    /// The signing key.
    pub signer: Signer,
    /// The clock that dates entries.
    pub clock: Clock,
    /// The name of the acting person or program.
    pub actor: String,
}

/// The end of a chain, with everything that appending needs.
#[derive(Clone, Debug)]
pub struct Head {
    /// The ref of the chain.
    pub name: String,
    /// The commit of the last entry, or `None` before entry 0.
    pub commit: Option<Oid>,
    /// The tree of that commit.
    pub tree: Option<Oid>,
    /// The leaf hash of the last entry.
    pub last: Option<Digest>,
    /// The time of the last entry.
    pub at: Option<Moment>,
    /// The number of entries, which is the number of the next one.
    pub entries: u64,
}

/// An entry that is to be appended.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The run, thread or log that the entry is about.
    pub about: Subject,
    /// The event.
    pub event: Event,
    /// The bytes that the event names and that are not stored yet.
    pub bytes: Vec<Vec<u8>>,
    /// The changes to the tree, if the chain is not that of a run.
    pub edits: Vec<(String, Edit)>,
}

/// An entry as read back.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its commit.
    pub commit: Oid,
    /// The tree of the commit.
    pub tree: Oid,
    /// Its leaf hash.
    pub hash: Digest,
    /// The entry.
    pub entry: Entry,
}

impl Link {
    /// Returns the entry with its hash and its commit, as in `log --json`.
    pub fn to_json(&self) -> Value {
        let mut value = self.entry.to_json();
        value["hash"] = self.hash.to_string().into();
        value["commit"] = self.commit.to_string().into();
        value
    }
}

impl Head {
    /// Returns the head of a chain that does not exist yet.
    pub fn unborn(name: String) -> Self {
        Self { name, commit: None, tree: None, last: None, at: None, entries: 0 }
    }

    /// Moves the head to the entry that follows it.
    pub fn follow(&mut self, link: &Link) {
        self.commit = Some(link.commit);
        self.tree = Some(link.tree);
        self.last = Some(link.hash);
        self.at = Some(link.entry.at);
        self.entries += 1;
    }
}

impl Writer {
    /// Writes entries after a head, without making them visible.
    pub fn append(&self, head: &Head, drafts: Vec<Draft>) -> Result<Appended, Error> {
        self.append_with(self.store.batch(), head, drafts)
    }

    /// Writes entries like [`Writer::append`], in the same batch as other objects.
    pub fn append_with(&self, batch: Batch, head: &Head, drafts: Vec<Draft>) -> Result<Appended, Error> {
        let mut appended = Appended {
            expected: head.commit,
            head: head.clone(),
            links: Vec::with_capacity(drafts.len()),
            store: self.store.clone(),
            batch,
        };
        for draft in drafts {
            appended.add(self, self.clock.now(), draft)?;
        }
        Ok(appended)
    }

    /// Writes entries with given times. An entry that would be dated before its predecessor gets
    /// the predecessor's time.
    pub fn append_dated(&self, head: &Head, drafts: Vec<(Moment, Draft)>) -> Result<Appended, Error> {
        let mut appended = self.append(head, Vec::new())?;
        for (at, draft) in drafts {
            appended.add(self, at, draft)?;
        }
        Ok(appended)
    }

    fn write(&self, batch: &mut Batch, head: &Head, now: Moment, draft: Draft) -> Result<Link, Error> {
        let entry = Entry {
            about: draft.about,
            seq: head.entries,
            at: head.at.map_or(now, |last| last.max(now)),
            actor: self.actor.clone(),
            prev: head.last,
            pinned: self.clock.is_pinned(),
            event: draft.event,
        };
        for bytes in &draft.bytes {
            batch.write_blob(bytes)?;
        }
        let tree = match head.tree {
            _ if entry.event.is_of_run() => batch.tree_of(entry.event.files())?,
            Some(unchanged) if draft.edits.is_empty() => unchanged,
            base => batch.edit_tree(base, &draft.edits)?,
        };
        let parents: Vec<Oid> = head.commit.into_iter().chain(entry.event.further_parents()).collect();
        let signature = self.signer.sign(&codec::payload(&entry, tree, &parents))?;
        let raw = codec::signed(&entry, tree, &parents, &signature);
        // Skips the count for short commits, which cannot exceed the limit.
        if raw.len() as u64 > bounds::COMMIT
            || (raw.len() > bounds::CONTAINERS && !bounds::is_light(&entry.canonical()))
        {
            return Err(Error::TooLarge(entry.subject(), raw.len()));
        }
        let commit = batch.write(gix::objs::Kind::Commit, &raw)?;
        Ok(Link { commit, tree, hash: entry.hash(), entry })
    }
}

/// Entries that are written, but not visible yet.
#[must_use = "nothing has happened until the entries are published"]
pub struct Appended {
    expected: Option<Oid>,
    head: Head,
    links: Vec<Link>,
    store: Store,
    batch: Batch,
}

impl Appended {
    fn add(&mut self, writer: &Writer, at: Moment, draft: Draft) -> Result<(), Error> {
        let link = writer.write(&mut self.batch, &self.head, at, draft)?;
        self.head.follow(&link);
        self.links.push(link);
        Ok(())
    }

    /// Returns the entries.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Names the ref of a new chain, if the name depends on its entries.
    pub(super) fn under(mut self, name: String) -> Self {
        self.head.name = name;
        self
    }

    /// Stores the objects without changing the ref. They are safe from pruning while the returned
    /// [`KeepGuard`] lives.
    pub fn place(self) -> Result<(KeepGuard, Vec<Link>), Error> {
        Ok((self.batch.keep()?, self.links))
    }

    /// Stores the objects, then swaps the ref.
    ///
    /// On [`Error::LostRace`], nothing changed: another process appended first.
    pub fn publish(self) -> Result<(Head, Vec<Link>), Error> {
        let Some(new) = self.links.last().map(|link| link.commit) else {
            return Ok((self.head, self.links));
        };
        let Self { expected, head, links, store, batch } = self;
        let guard = batch.keep()?;
        // A crash here leaves unreachable objects, a stale `.keep` file, and the chain as it was.
        match expected {
            Some(old) => refs::advance(&store, &head.name, old, new),
            None => refs::begin(&store, &head.name, new),
        }
        .map_err(|error| match error {
            refs::Error::LostRace(name) => Error::LostRace(name),
            other => Error::Ref(other),
        })?;
        // From here on, `git gc` sees the ref.
        drop(guard);
        Ok((head, links))
    }
}

/// Reads a whole chain, from entry 0 on.
///
/// Every commit is decoded strictly, and the order of entries is checked. Signatures are not
/// checked; `verify` does that.
pub fn read(store: &Store, name: &str) -> Result<Option<(Head, Vec<Link>)>, Error> {
    let tip = refs::read(store, name).map_err(Error::Ref)?;
    tip.map(|tip| read_at(store, name, tip)).transpose()
}

/// Reads the chain that ends at `tip`, wherever its ref `name` points.
pub fn read_at(store: &Store, name: &str, tip: Oid) -> Result<(Head, Vec<Link>), Error> {
    let (mut links, mut meter, reader) = (Vec::new(), Meter::default(), history::reader(store));
    let mut next = Some(tip);
    while let Some(commit) = next {
        let (link, parent) = link(&reader, commit, &mut meter)?;
        links.push(link);
        next = parent;
    }
    links.reverse();
    Ok((end(name, &links)?, links))
}

/// Returns the head of a chain with these entries; an error if they do not follow one another.
pub fn end(name: &str, links: &[Link]) -> Result<Head, Error> {
    let mut head = Head::unborn(name.to_owned());
    for link in links {
        if link.entry.seq != head.entries || link.entry.prev != head.last {
            return Err(Error::Broken(name.to_owned(), head.entries));
        }
        head.follow(link);
    }
    Ok(head)
}

/// Reads only the last entry of a chain, for appending to a chain that was verified.
pub fn tip(store: &Store, name: &str) -> Result<Head, Error> {
    let Some(commit) = refs::read(store, name).map_err(Error::Ref)? else {
        return Ok(Head::unborn(name.to_owned()));
    };
    tip_at(store, name, commit)
}

/// Reads `commit` as the last entry of a chain, wherever the ref `name` points.
pub fn tip_at(store: &Store, name: &str, commit: Oid) -> Result<Head, Error> {
    let link = link(&store.local(), commit, &mut Meter::default())?.0;
    let mut head = Head::unborn(name.to_owned());
    head.entries = link.entry.seq;
    head.follow(&link);
    Ok(head)
}

/// Reads the commit of one entry.
pub fn decode(store: &Store, commit: Oid) -> Result<codec::Decoded, Error> {
    decode_metered(&store.local(), commit, &mut Meter::default())
}

fn decode_metered(reader: &gix::Repository, commit: Oid, meter: &mut Meter) -> Result<codec::Decoded, Error> {
    let object = store::whole(reader, commit)?;
    meter.add(object.bytes.len() as u64, object.stored).map_err(|too_much| Error::TooMuch(commit, too_much))?;
    codec::decode(&object.bytes).map_err(|e| Error::Entry(commit, e))
}

fn link(reader: &gix::Repository, commit: Oid, meter: &mut Meter) -> Result<(Link, Option<Oid>), Error> {
    let decoded = decode_metered(reader, commit, meter)?;
    // The first entry of a forked or adopted thread has a commit of another chain as its only
    // parent.
    let further = decoded.entry.event.further_parents().first().copied();
    let first = decoded.parents.first().copied();
    let parent = if decoded.entry.prev.is_none() && further.is_some() && first == further { None } else { first };
    Ok((Link { commit, tree: decoded.tree, hash: decoded.hash, entry: decoded.entry }, parent))
}

errors! {
    /// An error in reading or appending to a chain.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Entry(Oid, #[source] codec::Error) "chain": "cannot read commit {0} of the chain";
    TooMuch(Oid, #[source] bounds::TooMuch) "chain": "cannot read the chain before commit {0}";
    TooLarge(String, usize) "too-large":
        "the entry {0:?} would have {1} bytes or too many values; an entry has at most {max} bytes, {containers} arrays and objects, and {values} values" [max = bounds::COMMIT, containers = bounds::CONTAINERS, values = bounds::VALUES];
    Broken(String, u64) "chain": "the chain of {0} is broken at entry {1}";
    LostRace(String) "lost-race" 5: "another process moved {0}";
    #[from] Store(store::Error), Sign(sign::Error), Ref(refs::Error);
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::LostRace(_))
    }
}

impl Lost for AnyError {
    /// Only the error itself counts: the operations of a wrapped one have had their own turns.
    fn is_lost(&self) -> bool {
        self.downcast_ref::<Error>()
            .map_or_else(|| self.downcast_ref::<refs::Error>().is_some_and(Lost::is_lost), Lost::is_lost)
    }
}
