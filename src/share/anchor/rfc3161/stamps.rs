//! The storage of tokens: a tree beside the run or thread, with files named by hash.

use std::collections::BTreeSet;

use crate::git::retry::{self};
use crate::git::store::{Edit, Store};
use crate::git::{refs, tree};
use crate::model::any_error::AnyError;
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::place::Place;

use super::LONGEST;

/// The maximum total size of the tokens to read in one place, in bytes; a small one counts as
/// [`SMALL`].
const MOST: u64 = 64 << 20;

/// The minimum size that a token counts, in bytes.
const SMALL: u64 = 1 << 10;

/// The files beside a run or thread, our own and fetched ones.
pub(super) struct Stamps {
    found: Vec<Found>,
    /// The places above that limit.
    pub(super) overfull: Vec<String>,
}

/// A file that may be a token.
struct Found {
    name: String,
    blob: Oid,
    is_own: bool,
}

/// A read file.
pub(super) struct Token {
    /// Its name in the tree.
    pub(super) name: String,
    /// Whether it is in this repository's own ref, which no fetch changes.
    pub(super) is_own: bool,
    pub(super) bytes: Vec<u8>,
}

impl Stamps {
    /// Lists the files beside a run or thread that may be tokens. Other files are skipped, and do
    /// not count against the limit.
    pub(super) fn list(store: &Store, subject: &Place) -> Result<Self, AnyError> {
        let place = subject.stamps().expect("it is a run's or a thread's");
        let own = place.below(format::REFS);
        let mut places: Vec<(String, Oid)> =
            refs::read(store, &own)?.map(|tree| (own.clone(), tree)).into_iter().collect();
        places.extend(refs::fetched_at(store, &place)?);
        let mut visited = BTreeSet::new();
        let (mut found, mut overfull) = (Vec::new(), Vec::new());
        let repo = store.local();
        // Each place has its own limit, so that one cannot use up another's.
        for (reference, tree) in places {
            let mut room = MOST;
            for (name, blob) in tree::files(store, tree).unwrap_or_default() {
                let size = repo.try_find_header(blob.0).ok().flatten().map(|header| header.size());
                let Some(size) = size.filter(|size| *size <= LONGEST) else { continue };
                if visited.contains(&blob) {
                    continue;
                }
                let Some(left) = room.checked_sub(size.max(SMALL)) else {
                    overfull.push(reference.clone());
                    break;
                };
                room = left;
                visited.insert(blob);
                found.push(Found { name, blob, is_own: reference == own });
            }
        }
        Ok(Self { found, overfull })
    }

    /// Reads the files one by one.
    pub(super) fn read<'s>(&'s self, store: &'s Store) -> impl Iterator<Item = Token> + 's {
        self.found.iter().filter_map(|Found { name, blob, is_own }| {
            Some(Token { name: name.clone(), is_own: *is_own, bytes: store.read_blob(*blob).ok()? })
        })
    }
}

/// Adds a token, with the number of entries if it is about a thread. No file is removed.
pub(super) fn keep(store: &Store, subject: &Place, entries: Option<u64>, token: &[u8]) -> Result<(), AnyError> {
    let name = subject.stamps().expect("it is a run's or a thread's").below(format::REFS);
    retry::run(|| {
        let old = refs::read(store, &name)?;
        let mut batch = store.batch();
        let file = format::stamp_name(entries, Digest::compute(token));
        let tree = batch.edit_tree(old, &[(file, Edit::Bytes(token.to_vec()))])?;
        let _kept = batch.keep()?;
        match old {
            Some(old) => refs::advance(store, &name, old, tree)?,
            None => refs::create(store, &name, tree)?,
        }
        Ok(())
    })
}

errors! {
    /// An error while reading or storing tokens.
    #[derive(Debug, thiserror::Error)] pub enum Error = "time-stamp";
    Overfull(String): "{0} holds more time stamps than are looked at, and none of those that were looked at holds";
}
