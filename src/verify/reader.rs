//! The one reader of chains: the commits from a tip back, each decoded, hashed, and its signature checked.
//!
//! It knows nothing of runs, threads and logs. What a chain of each kind is besides its links stands where that kind is read:
//! how far back it goes, and what is made of commits that are no entries, and of an end that comes too early.

use std::collections::BTreeSet;

use gix::objs::Kind;

use crate::git::codec::{self, Decoded};
use crate::git::store::Store;
use crate::ledger::sign;
use crate::model::bounds::Meter;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Entry;
use crate::model::printable::cut;

use super::objects::{Fault, Objects, each};

/// How many commits are read before they are decoded, unless so many bytes were read first.
const BATCH: usize = 4096;

/// The bytes of commits after which those that were read are decoded.
const BATCH_BYTES: usize = 8 << 20;

/// One entry as it stands in a chain of whatever kind.
pub(super) struct Link {
    pub(super) commit: Oid,
    /// The tree after it.
    pub(super) tree: Oid,
    /// The tree of the commit before it, whatever that is; none of the first that was read.
    pub(super) before: Option<Oid>,
    pub(super) parents: Vec<Oid>,
    pub(super) hash: Digest,
    pub(super) entry: Entry,
    /// The fingerprint of the key that made the signature, or what is wrong with it.
    pub(super) signer: Result<String, String>,
    /// Whether whoever asked vouches for it, so that its signature was not checked.
    pub(super) vouched: bool,
}

/// A commit of a chain: an entry, or why it is none.
pub(super) type Commit = Result<Box<Link>, String>;

/// How a chain is read.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    pub(super) back: Back,
    /// The commit up to which entries are vouched for.
    pub(super) vouched: Option<Oid>,
    /// What chains that are held beside this one come to.
    pub(super) meter: Meter,
}

/// How far back a chain is read, always along first parents, whatever git believes about them.
#[derive(Clone, Copy)]
pub(super) enum Back {
    /// To the entry that goes on from none, whose parent is another chain's; or to the first commit that is no entry.
    ToFirstEntry,
    /// To the commit without a parent.
    ToRoot {
        /// So many commits that are no entries are passed over; with more of them, what is behind is not read.
        strangers: usize,
        /// So many commits are read.
        commits: usize,
    },
}

/// A chain as far as it could be read.
pub(super) struct Walked {
    /// The commits, oldest first.
    pub(super) commits: Vec<Commit>,
    /// What kept the walk from going on.
    pub(super) stop: Option<Stop>,
    /// What the commits come to, those of other chains that were counted before included.
    pub(super) meter: Meter,
}

/// Why a walk ended too early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    #[error("{0}")]
    Fault(Fault),
    #[error("{0} commits are no entries; the history before them was not read")]
    Strangers(usize),
    #[error("it is too long to be read: more than {0} commits")]
    TooLong(usize),
}

/// A commit that was read.
struct Got {
    commit: Oid,
    tree: Option<Oid>,
    decoded: Result<Decoded, codec::Error>,
    vouched: bool,
}

impl Walk {
    /// A walk so far back, which nobody vouches for.
    pub(super) fn new(back: Back) -> Self {
        Self { back, vouched: None, meter: Meter::default() }
    }

    /// Reads the chain that ends at `tip`. Whatever that is, this ends and says what it found.
    pub(super) fn read(self, store: &Store, tip: Oid) -> Walked {
        let mut walking = Walking { walk: self, objects: Objects::new(store), next: Some(tip), stop: None, read: 0 };
        let (mut commits, mut strangers) = (Vec::new(), 0);
        let mut vouched = false;
        while walking.goes_on() {
            let batch = walking.batch(store, &mut vouched);
            let signers = each(store, &batch, |_, got| got.signer());
            for (got, signer) in batch.into_iter().zip(signers) {
                let tree = got.tree;
                let link = Link::new(got, signer);
                strangers += usize::from(link.is_err());
                commits.push((tree, link));
                // The commits behind it are left out, although they were read with it.
                if let Back::ToRoot { strangers: most, .. } = self.back
                    && strangers > most
                {
                    walking.stop = Some(Stop::Strangers(strangers));
                    break;
                }
            }
        }
        commits.reverse();
        let mut before = None;
        let placed = |(tree, link): (Option<Oid>, Commit)| {
            let before = std::mem::replace(&mut before, tree);
            link.map(|mut link| {
                link.before = before;
                link
            })
        };
        Walked { commits: commits.into_iter().map(placed).collect(), stop: walking.stop, meter: walking.walk.meter }
    }
}

/// A walk on its way.
struct Walking {
    walk: Walk,
    objects: Objects,
    next: Option<Oid>,
    stop: Option<Stop>,
    /// How many commits were read.
    read: usize,
}

impl Walking {
    fn goes_on(&self) -> bool {
        self.next.is_some() && self.stop.is_none()
    }

    /// Reads the next commits, newest first, and decodes them; `vouched` is whether they are vouched for.
    fn batch(&mut self, store: &Store, vouched: &mut bool) -> Vec<Got> {
        let (mut places, mut raws, mut decoded, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while let Some(commit) = self.next
            && places.len() < BATCH
            && bytes < BATCH_BYTES
        {
            if let Back::ToRoot { commits, .. } = self.walk.back
                && commits == self.read
            {
                self.stop = Some(Stop::TooLong(commits));
                break;
            }
            let raw = match self.objects.commit(commit, &mut self.walk.meter) {
                Ok(raw) => raw,
                Err(fault) => {
                    self.stop = Some(Stop::Fault(fault));
                    break;
                }
            };
            let (tree, parent) = tree_and_parent(&raw);
            *vouched |= self.walk.vouched == Some(commit);
            self.read += 1;
            bytes += raw.len();
            places.push((commit, tree, *vouched));
            match self.walk.back {
                // Only the entry says whether another comes before it.
                Back::ToFirstEntry => {
                    let entry = codec::decode(&raw);
                    let goes_on = entry.as_ref().is_ok_and(|decoded| decoded.entry.prev.is_some());
                    self.next = parent.filter(|_| goes_on);
                    decoded.push(entry);
                }
                Back::ToRoot { .. } => {
                    self.next = parent;
                    raws.push(raw);
                }
            }
        }
        decoded.extend(each(store, &raws, |objects, raw: &Vec<u8>| {
            objects.take_turn(raw.len());
            codec::decode(raw)
        }));
        let got = places.into_iter().zip(decoded);
        got.map(|((commit, tree, vouched), decoded)| Got { commit, tree, decoded, vouched }).collect()
    }
}

impl Got {
    /// Returns the fingerprint of the key that signed the entry, or what is wrong with the signature.
    fn signer(&self) -> Result<String, String> {
        match &self.decoded {
            Ok(decoded) if !self.vouched => signer(decoded),
            _ => Err("its signature was not checked".to_owned()),
        }
    }
}

impl Link {
    /// Reads a single commit, of which nothing is said but that somebody signed it or not.
    pub(super) fn read(objects: &Objects, commit: Oid) -> Commit {
        let raw = objects.commit(commit, &mut Meter::default()).map_err(|fault| fault.to_string())?;
        let (tree, _) = tree_and_parent(&raw);
        let got = Got { commit, tree, decoded: codec::decode(&raw), vouched: false };
        let signer = got.signer();
        Self::new(got, signer)
    }

    fn new(got: Got, signer: Result<String, String>) -> Commit {
        let Got { commit, decoded, vouched, .. } = got;
        let decoded = decoded.map_err(|error| cut(format!("commit {}: {error}", short(commit))))?;
        let Decoded { tree, parents, hash, entry, .. } = decoded;
        Ok(Box::new(Self { commit, tree, before: None, parents, hash, entry, signer, vouched }))
    }
}

/// Returns those of some commits that are not on the line of first parents behind `tip`.
pub(super) fn strangers(store: &Store, tip: Oid, commits: &[Oid]) -> Result<BTreeSet<Oid>, Fault> {
    let objects = Objects::new(store);
    let mut strangers: BTreeSet<Oid> = commits.iter().copied().collect();
    let mut next = Some(tip);
    while let Some(commit) = next
        && !strangers.is_empty()
    {
        strangers.remove(&commit);
        next = tree_and_parent(&objects.read(commit, Kind::Commit)?).1;
    }
    Ok(strangers)
}

/// Finds tree and first parent in a commit that need not be an entry.
fn tree_and_parent(raw: &[u8]) -> (Option<Oid>, Option<Oid>) {
    let mut lines = raw.split(|b| *b == b'\n').map(|line| std::str::from_utf8(line).unwrap_or_default());
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.parse().ok();
    (field("tree "), field("parent "))
}

/// Returns the fingerprint of the key that signed an entry, or what is wrong with the signature.
pub(super) fn signer(decoded: &Decoded) -> Result<String, String> {
    sign::signer(&decoded.payload, decoded.signature.as_deref()).map_err(|why| why.to_string())
}

/// Returns an object name as people write it.
pub(super) fn short(oid: Oid) -> String {
    oid.0.to_hex_with_len(7).to_string()
}
