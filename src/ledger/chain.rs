//! The chain of entries: append, publish, read.
//!
//! An append writes objects only. Nothing is visible before [`Appended::publish`] swaps the one ref, and a crash before that
//! leaves nothing but objects that git will prune, once their `.keep` file is gone.

use serde_json::Value;

use crate::clock::Clock;
use crate::git::codec;
use crate::git::race::Lost;
use crate::git::refs;
use crate::git::store::{self, Batch, Edit, Kept, Store};
use crate::ledger::sign::{self, Signer};
use crate::model::bounds::{self, Meter};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event, Subject};
use crate::model::time::Moment;

/// What an append needs besides the entries.
#[derive(Clone)]
pub struct Writer {
    /// Where objects and refs go.
    pub store: Store,
    /// Who signs.
    pub signer: Signer,
    /// Where moments come from.
    pub clock: Clock,
    /// Who acts.
    pub actor: String,
}

/// The end of a chain: all that appending to it needs to know.
#[derive(Clone, Debug)]
pub struct Head {
    /// The ref that holds the chain.
    pub name: String,
    /// The commit of the last entry; none before entry 0.
    pub commit: Option<Oid>,
    /// The tree of that commit.
    pub tree: Option<Oid>,
    /// The leaf hash of the last entry.
    pub last: Option<Digest>,
    /// When the last entry was made.
    pub at: Option<Moment>,
    /// How many entries there are; the next one has this number.
    pub entries: u64,
}

/// An entry to be: its event, and what it changes in the tree.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What the entry belongs to or is about.
    pub about: Subject,
    /// What happened.
    pub event: Event,
    /// What changes in the tree.
    pub edits: Vec<(String, Edit)>,
}

/// One entry as read back.
#[derive(Clone, Debug)]
pub struct Link {
    /// The commit that carries it.
    pub commit: Oid,
    /// The tree after it.
    pub tree: Oid,
    /// Its leaf hash.
    pub hash: Digest,
    /// The entry.
    pub entry: Entry,
}

impl Link {
    /// Returns the entry with its hash and its commit, as `log --json` has it.
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

    fn push(&mut self, link: &Link) {
        self.commit = Some(link.commit);
        self.tree = Some(link.tree);
        self.last = Some(link.hash);
        self.at = Some(link.entry.at);
        self.entries += 1;
    }
}

impl Writer {
    /// Writes entries onto a head, without making them visible.
    pub fn append(&self, head: &Head, drafts: Vec<Draft>) -> Result<Appended, Error> {
        self.append_with(self.store.batch(), head, drafts)
    }

    /// Writes entries onto a head, together with what was written for them already.
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

    /// Writes entries onto a head, each dated as it was before, or as the one before it where that is later.
    pub fn append_dated(&self, head: &Head, drafts: Vec<(Moment, Draft)>) -> Result<Appended, Error> {
        let mut appended = self.append(head, Vec::new())?;
        for (at, draft) in drafts {
            appended.add(self, at, draft)?;
        }
        Ok(appended)
    }

    fn write(&self, batch: &mut Batch, head: &Head, (now, draft): (Moment, Draft)) -> Result<Link, Error> {
        let entry = Entry {
            about: draft.about,
            seq: head.entries,
            at: head.at.map_or(now, |last| last.max(now)),
            actor: self.actor.clone(),
            prev: head.last,
            pinned: self.clock.is_pinned(),
            event: draft.event,
        };
        let tree = match head.tree {
            Some(unchanged) if draft.edits.is_empty() => unchanged,
            base => batch.edit_tree(base, &draft.edits)?,
        };
        let parents: Vec<Oid> = head.commit.into_iter().chain(entry.event.further_parents()).collect();
        let signature = self.signer.sign(&codec::payload(&entry, tree, &parents))?;
        let raw = codec::signed(&entry, tree, &parents, &signature);
        // A short one cannot hold too many.
        let heavy = || raw.len() > bounds::CONTAINERS && !bounds::is_light(&entry.canonical());
        if raw.len() as u64 > bounds::COMMIT || heavy() {
            return Err(Error::TooLarge(entry.subject(), raw.len()));
        }
        let commit = batch.write(gix::objs::Kind::Commit, &raw)?;
        Ok(Link { commit, tree, hash: entry.hash(), entry })
    }
}

/// Entries that are written but not visible yet.
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
        let link = writer.write(&mut self.batch, &self.head, (at, draft))?;
        self.head.push(&link);
        self.links.push(link);
        Ok(())
    }

    /// Returns the entries.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Gives a chain that does not exist yet the name of its ref, which follows from its entries.
    pub(super) fn under(mut self, name: String) -> Self {
        self.head.name = name;
        self
    }

    /// Puts the objects in place, on disk and out of reach of any prune while what is returned lives; the ref stays where it is.
    pub fn place(self) -> Result<(Kept, Vec<Link>), Error> {
        Ok((self.batch.keep()?, self.links))
    }

    /// Puts the objects in place, on disk and out of reach of any prune, then swaps the ref.
    ///
    /// On [`Error::LostRace`] nothing has happened: somebody else appended first.
    pub fn publish(self) -> Result<(Head, Vec<Link>), Error> {
        let Some(new) = self.links.last().map(|link| link.commit) else {
            return Ok((self.head, self.links));
        };
        let Self { expected, head, links, store, batch } = self;
        let kept = batch.keep()?;
        // A crash here leaves unreachable objects, a `.keep` file that holds no lock, and the chain as it was.
        match expected {
            Some(old) => refs::advance(&store, &head.name, old, new),
            None => refs::begin(&store, &head.name, new),
        }
        .map_err(|error| match error {
            refs::Error::LostRace(name) => Error::LostRace(name),
            other => Error::Ref(other),
        })?;
        // Only now may git have them: a `git gc` from here on sees the ref. What somebody took away by force is written again.
        kept.put_back().map_err(store::Error::Pack)?;
        Ok((head, links))
    }
}

/// Reads a whole chain, from entry 0 on.
///
/// Every commit is decoded strictly and each entry's place is checked; signatures are not: that is for `verify`.
pub fn read(store: &Store, name: &str) -> Result<Option<(Head, Vec<Link>)>, Error> {
    let tip = refs::read(store, name).map_err(Error::Ref)?;
    tip.map(|tip| read_at(store, name, tip)).transpose()
}

/// Reads the chain that ends at `tip`, whatever its ref `name` points at.
pub fn read_at(store: &Store, name: &str, tip: Oid) -> Result<(Head, Vec<Link>), Error> {
    let (mut links, mut meter) = (Vec::new(), Meter::default());
    let mut next = Some(tip);
    while let Some(commit) = next {
        let (link, parent) = link(store, commit, &mut meter)?;
        links.push(link);
        next = parent;
    }
    links.reverse();
    Ok((end(name, &links)?, links))
}

/// Returns the end of a chain of these entries, which must follow one another from entry 0 on.
pub fn end(name: &str, links: &[Link]) -> Result<Head, Error> {
    let mut head = Head::unborn(name.to_owned());
    for link in links {
        if link.entry.seq != head.entries || link.entry.prev != head.last {
            return Err(Error::Broken(name.to_owned(), head.entries));
        }
        head.push(link);
    }
    Ok(head)
}

/// Reads only the last entry of a chain, for appending to one that is known to be sound.
pub fn tip(store: &Store, name: &str) -> Result<Head, Error> {
    let Some(commit) = refs::read(store, name).map_err(Error::Ref)? else {
        return Ok(Head::unborn(name.to_owned()));
    };
    tip_at(store, name, commit)
}

/// Reads the entry `commit` as the last one of a chain, whatever the chain's ref `name` points at.
pub fn tip_at(store: &Store, name: &str, commit: Oid) -> Result<Head, Error> {
    let link = link(store, commit, &mut Meter::default())?.0;
    let mut head = Head::unborn(name.to_owned());
    head.entries = link.entry.seq;
    head.push(&link);
    Ok(head)
}

/// Reads the commit of one entry.
pub fn decode(store: &Store, commit: Oid) -> Result<codec::Decoded, Error> {
    decode_metered(store, commit, &mut Meter::default())
}

fn decode_metered(store: &Store, commit: Oid, meter: &mut Meter) -> Result<codec::Decoded, Error> {
    let object = store.whole(commit)?;
    meter.add(object.bytes.len() as u64, object.stored).map_err(|too_much| Error::TooMuch(commit, too_much))?;
    codec::decode(&object.bytes).map_err(|e| Error::Entry(commit, e))
}

/// Reads one entry and its parent.
fn link(store: &Store, commit: Oid, meter: &mut Meter) -> Result<(Link, Option<Oid>), Error> {
    let decoded = decode_metered(store, commit, meter)?;
    // A thread that began as another's checkpoint has that commit as its first entry's only parent, which is not its own.
    let further = decoded.entry.event.further_parents().first().copied();
    let first = decoded.parents.first().copied();
    let parent = if decoded.entry.prev.is_none() && further.is_some() && first == further { None } else { first };
    Ok((Link { commit, tree: decoded.tree, hash: decoded.hash, entry: decoded.entry }, parent))
}

/// What can go wrong with a chain.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Ref(refs::Error),
    #[error("the entry could not be signed")]
    Sign(#[from] sign::Error),
    #[error("commit {0} of the chain cannot be read")]
    Entry(Oid, #[source] codec::Error),
    #[error("the chain cannot be read back from commit {0} on")]
    TooMuch(Oid, #[source] bounds::TooMuch),
    #[error("the entry {0:?} would have {1} bytes or too many values; an entry has at most {max} bytes, {containers} arrays and objects, and {values} values", max = bounds::COMMIT, containers = bounds::CONTAINERS, values = bounds::VALUES)]
    TooLarge(String, usize),
    #[error("the chain of {0} is broken at entry {1}")]
    Broken(String, u64),
    #[error("{0} was moved by someone else in the meantime")]
    LostRace(String),
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::LostRace(_))
    }
}
