//! Where tokens are kept: in a tree of their own beside the run, each under its own hash.

use std::collections::BTreeSet;

use crate::git::race::{self, Lost};
use crate::git::store::{self, Edit, Store};
use crate::git::{refs, tree};
use crate::model::digest::{Digest, Oid};
use crate::model::format;
use crate::model::name::RunId;
use crate::model::place::Place;

use super::LONGEST;

/// The most bytes of tokens that are looked at in one place; a small one counts as [`SMALL`].
const MOST: u64 = 64 << 20;

/// What a token counts at least.
const SMALL: u64 = 1 << 10;

/// What lies beside a run, ours and fetched.
pub(super) struct Stamps {
    blobs: Vec<Oid>,
    /// The places that hold more than is looked at.
    pub(super) overfull: Vec<String>,
}

impl Stamps {
    /// Lists what may be tokens. What cannot be one is passed over: anybody may have put it there, and it takes no room from others.
    pub(super) fn list(store: &Store, run: &RunId) -> Result<Self, Error> {
        let own = format::stamps_ref(run);
        let place = Place::of_run(run).stamps().expect("it is a run's");
        let mut places: Vec<(String, Oid)> =
            refs::read(store, &own)?.map(|tree| (own.clone(), tree)).into_iter().collect();
        places.extend(refs::fetched_at(store, &place)?);
        let mut seen = BTreeSet::new();
        let (mut blobs, mut overfull) = (Vec::new(), Vec::new());
        let repo = store.local();
        // Each place has room of its own, so that nobody can fill that of another.
        for (name, tree) in places {
            let mut room = MOST;
            for (_, blob) in tree::files(store, tree).unwrap_or_default() {
                let size = repo.try_find_header(blob.0).ok().flatten().map(|header| header.size());
                let Some(size) = size.filter(|size| *size <= LONGEST) else { continue };
                if seen.contains(&blob) {
                    continue;
                }
                let Some(left) = room.checked_sub(size.max(SMALL)) else {
                    overfull.push(name);
                    break;
                };
                room = left;
                seen.insert(blob);
                blobs.push(blob);
            }
        }
        Ok(Self { blobs, overfull })
    }

    /// Reads them one by one.
    pub(super) fn read<'s>(&'s self, store: &'s Store) -> impl Iterator<Item = Vec<u8>> + 's {
        self.blobs.iter().filter_map(|blob| store.read_blob(*blob).ok())
    }
}

/// Adds a token; nothing that is there goes.
pub(super) fn keep(store: &Store, run: &RunId, token: &[u8]) -> Result<(), Error> {
    let name = format::stamps_ref(run);
    race::run(|| {
        let old = refs::read(store, &name)?;
        let mut batch = store.batch();
        let tree =
            batch.edit_tree(old, &[(format!("{}.tst", Digest::of(token).hex()), Edit::Bytes(token.to_vec()))])?;
        let _kept = batch.keep()?;
        match old {
            Some(old) => refs::advance(store, &name, old, tree)?,
            None => refs::create(store, &name, tree)?,
        }
        Ok(())
    })
}

/// Why tokens could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0} holds more time stamps than are looked at, and none of those that were looked at holds")]
    Overfull(String),
    #[error(transparent)]
    Ref(#[from] refs::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Ref(error) if error.is_lost())
    }
}
