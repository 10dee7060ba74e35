//! Where tokens are kept: in a tree of their own beside the run, each under its own hash.

use std::collections::BTreeSet;

use crate::git::store::{self, Edit, Store};
use crate::git::{refs, tree};
use crate::model::digest::Digest;
use crate::model::format;
use crate::model::name::RunId;

use super::LONGEST;

/// More tokens of one run than this are not read.
const MOST: usize = 64;

/// How often keeping one is tried again when somebody else was faster.
const RACES: usize = 20;

/// Reads all tokens at hand for a run, ours and fetched. What is none is passed over: anybody may have put it there.
pub(super) fn read(store: &Store, run: &RunId) -> Result<Vec<Vec<u8>>, Error> {
    let own = format::stamps_ref(run);
    let below = own.strip_prefix("refs/handoff").expect("all our refs begin with it");
    let fetched = refs::list(store, "refs/handoff/remotes/")?.into_iter().filter(|(name, _)| name.ends_with(below));
    let mut seen = BTreeSet::new();
    let mut tokens = Vec::new();
    for tree in refs::read(store, &own)?.into_iter().chain(fetched.map(|(_, tree)| tree)) {
        for (_, blob) in tree::files(store, tree).unwrap_or_default().into_iter().take(MOST) {
            if seen.insert(blob)
                && let Ok(bytes) = store.read_blob(blob)
                && bytes.len() as u64 <= LONGEST
            {
                tokens.push(bytes);
            }
        }
    }
    tokens.truncate(MOST);
    Ok(tokens)
}

/// Adds a token; nothing that is there goes.
pub(super) fn keep(store: &Store, run: &RunId, token: &[u8]) -> Result<(), Error> {
    let name = format::stamps_ref(run);
    for _ in 0..RACES {
        let old = refs::read(store, &name)?;
        let mut batch = store.batch();
        let tree =
            batch.edit_tree(old, &[(format!("{}.tst", Digest::of(token).hex()), Edit::Bytes(token.to_vec()))])?;
        let _kept = batch.keep()?;
        let moved = match old {
            Some(old) => refs::advance(store, &name, old, tree),
            None => refs::create(store, &name, tree),
        };
        match moved {
            Err(refs::Error::LostRace(_)) => {}
            other => return Ok(other?),
        }
    }
    Err(refs::Error::LostRace(name).into())
}

/// Why tokens could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A ref could not be read or moved.
    #[error(transparent)]
    Ref(#[from] refs::Error),
    /// Objects could not be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
}
