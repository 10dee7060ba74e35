//! Reads chains of any kind: the commits from a tip back, each decoded, hashed, and its signature
//! checked.
//!
//! The modules of runs, threads and logs decide how far back to read, and judge commits that are
//! not entries and chains that end early.

use std::collections::BTreeSet;

use gix::objs::Kind;

use crate::git::codec::{self, Decoded};
use crate::git::store::Store;
use crate::ledger::sign;
use crate::model::bounds::Meter;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Entry, Event};
use crate::model::printable::cut;

use super::objects::{Fault, Objects, map_objects};

const BATCH: usize = 4096;

const BATCH_BYTES: usize = 8 << 20;

/// An entry in a chain of any kind.
pub(super) struct Link {
    pub(super) commit: Oid,
    /// The tree after the entry.
    pub(super) tree: Oid,
    pub(super) parents: Vec<Oid>,
    pub(super) hash: Digest,
    pub(super) entry: Entry,
    /// The fingerprint of the key that signed, or the fault of the signature.
    pub(super) signer: Result<String, String>,
    /// True if the entry was verified before. Then its signature was not checked again, and only
    /// a dispatch has its key here.
    pub(super) verified_before: bool,
}

/// An entry, or the reason why the commit is not one.
pub(super) type Commit = Result<Box<Link>, String>;

#[derive(Clone, Copy)]
pub(super) struct Walk {
    pub(super) back: Extent,
    /// The commit up to which entries were verified before.
    pub(super) verified_before: Option<Oid>,
    /// The size of chains that are in memory at the same time.
    pub(super) meter: Meter,
}

/// How far back a chain is read, along first parents.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// To the entry without a predecessor, whose parent belongs to another chain; or to the first
    /// commit that is not an entry.
    ToFirstEntry,
    /// To the entry whose parent is this commit; otherwise as [`Extent::ToFirstEntry`].
    After(Oid),
    /// To the commit without a parent.
    ToRoot {
        /// The most commits that are not entries; with more of them, the walk stops.
        max_non_entries: usize,
        max_commits: usize,
    },
}

pub(super) struct Walked {
    pub(super) commits: Vec<Commit>,
    pub(super) stop: Option<Stop>,
    /// The size of the commits, including earlier chains.
    pub(super) meter: Meter,
}

errors! {
    #[derive(Debug, thiserror::Error)] pub(super) enum Stop;
    Fault(Fault): "{0}";
    NonEntries(usize): "{0} commits are no entries; the history before them was not read";
    TooLong(usize): "it is too long to be read: more than {0} commits";
}

struct RawEntry {
    commit: Oid,
    decoded: Result<Decoded, codec::Error>,
    verified_before: bool,
}

impl Walk {
    pub(super) fn new(back: Extent) -> Self {
        Self { back, verified_before: None, meter: Meter::default() }
    }

    /// Reads the chain that ends at `tip`. Never fails: the result says why the walk ended.
    pub(super) fn read(self, store: &Store, tip: Oid) -> Walked {
        let mut walking = Walking { walk: self, objects: Objects::new(store), next: Some(tip), stop: None, read: 0 };
        let (mut commits, mut strangers) = (Vec::new(), 0);
        let mut verified_before = false;
        while walking.is_unfinished() {
            let batch = walking.batch(store, &mut verified_before);
            let signers = map_objects(store, &batch, |_, got| got.signer());
            for (got, signer) in batch.into_iter().zip(signers) {
                let link = Link::new(got, signer);
                strangers += usize::from(link.is_err());
                commits.push(link);
                // Later commits of the batch are dropped.
                if let Extent::ToRoot { max_non_entries: most, .. } = self.back
                    && strangers > most
                {
                    walking.stop = Some(Stop::NonEntries(strangers));
                    break;
                }
            }
        }
        commits.reverse();
        Walked { commits, stop: walking.stop, meter: walking.walk.meter }
    }
}

struct Walking {
    walk: Walk,
    objects: Objects,
    next: Option<Oid>,
    stop: Option<Stop>,
    read: usize,
}

impl Walking {
    fn is_unfinished(&self) -> bool {
        self.next.is_some() && self.stop.is_none()
    }

    /// Reads and decodes the next commits, newest first.
    fn batch(&mut self, store: &Store, verified_before: &mut bool) -> Vec<RawEntry> {
        let (mut places, mut raws, mut decoded, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while let Some(commit) = self.next
            && places.len() < BATCH
            && bytes < BATCH_BYTES
        {
            if let Extent::ToRoot { max_commits: commits, .. } = self.walk.back
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
            let parent = first_parent(&raw);
            *verified_before |= self.walk.verified_before == Some(commit);
            self.read += 1;
            bytes += raw.len();
            places.push((commit, *verified_before));
            match self.walk.back {
                // Only the decoded entry says if there is another one before it.
                Extent::ToFirstEntry | Extent::After(_) => {
                    let entry = codec::decode(&raw);
                    let is_unfinished = entry.as_ref().is_ok_and(|parsed| parsed.entry.prev.is_some());
                    self.next = parent.filter(|parent| {
                        is_unfinished && !matches!(self.walk.back, Extent::After(known) if known == *parent)
                    });
                    decoded.push(entry);
                }
                Extent::ToRoot { .. } => {
                    self.next = parent;
                    raws.push(raw);
                }
            }
        }
        decoded.extend(map_objects(store, &raws, |objects, raw: &Vec<u8>| {
            objects.take_turn(raw.len());
            codec::decode(raw)
        }));
        let got = places.into_iter().zip(decoded);
        got.map(|((commit, known), entry)| RawEntry { commit, decoded: entry, verified_before: known }).collect()
    }
}

impl RawEntry {
    /// Returns the fingerprint of the key that signed, or the fault of the signature.
    fn signer(&self) -> Result<String, String> {
        match &self.decoded {
            Ok(decoded) if !self.verified_before => signer(decoded),
            // Later entries may end this attempt only with its key.
            Ok(decoded) if matches!(decoded.entry.event, Event::ItemFired(_)) => {
                sign::named_signer(decoded.signature.as_deref()).map_err(|why| why.to_string())
            }
            _ => Err("its signature was not checked".to_owned()),
        }
    }
}

impl Link {
    /// Reads a single commit, without its place in a chain.
    pub(super) fn read(objects: &Objects, commit: Oid) -> Commit {
        let raw = objects.commit(commit, &mut Meter::default()).map_err(|fault| fault.to_string())?;
        let got = RawEntry { commit, decoded: codec::decode(&raw), verified_before: false };
        let signer = got.signer();
        Self::new(got, signer)
    }

    fn new(got: RawEntry, signer: Result<String, String>) -> Commit {
        let RawEntry { commit, decoded, verified_before, .. } = got;
        let decoded = decoded.map_err(|error| cut(format!("commit {}: {error}", short(commit))))?;
        let Decoded { tree, parents, hash, entry, .. } = decoded;
        Ok(Box::new(Self { commit, tree, parents, hash, entry, signer, verified_before }))
    }
}

/// Returns those `commits` that are not first-parent ancestors of `tip`.
pub(super) fn strangers(store: &Store, tip: Oid, commits: &[Oid]) -> Result<BTreeSet<Oid>, Fault> {
    let objects = Objects::new(store);
    let mut strangers: BTreeSet<Oid> = commits.iter().copied().collect();
    let mut next = Some(tip);
    while let Some(commit) = next
        && !strangers.is_empty()
    {
        strangers.remove(&commit);
        next = first_parent(&objects.read(commit, Kind::Commit)?);
    }
    Ok(strangers)
}

/// Returns the first parent of a commit, even if it is not an entry.
fn first_parent(raw: &[u8]) -> Option<Oid> {
    let second = raw.split(|b| *b == b'\n').nth(1)?;
    std::str::from_utf8(second).ok()?.strip_prefix("parent ")?.parse().ok()
}

/// Returns the fingerprint of the key that signed an entry, or the fault of the signature.
pub(super) fn signer(decoded: &Decoded) -> Result<String, String> {
    sign::signer(&decoded.payload, decoded.signature.as_deref()).map_err(|why| why.to_string())
}

pub(super) fn short(oid: Oid) -> String {
    oid.0.to_hex_with_len(7).to_string()
}
