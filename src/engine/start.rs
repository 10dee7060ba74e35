//! Prepares the tree that an item begins on, and the patches that it consumes.

use std::collections::BTreeMap;

use crate::git::merge::Scratch;
use crate::git::start::{self, Starts};
use crate::git::store::Store;
use crate::git::verified_stream;
use crate::model::causes::in_words;
use crate::model::entry::Product;
use crate::model::item_index::ItemIndex;
use crate::model::state::RunState;

use super::attempt::spec::{ConsumedPatch, Start};

/// The start of the reason if the patches that an item begins on conflict.
pub(super) const PATCH_CONFLICT: &str = "patch-conflict: ";

/// Returns the base with the patches that an item's needs apply, as a commit, or `None` if they
/// apply none. Fails with the reason, which names the files of a conflict.
pub(super) fn start(store: &Store, state: &RunState, at: ItemIndex) -> Result<Option<Start>, String> {
    if state.applied(at).is_empty() {
        return Ok(None);
    }
    let base = state.submitted.base;
    let scratch = Scratch::new(store, base).map_err(|error| in_words(&error))?;
    let tree = Starts::new(&scratch, state).start(at, &|_, patch| read(store, patch)).map_err(|error| match error {
        conflict @ start::Error::Conflict(..) => format!("{PATCH_CONFLICT}{conflict}"),
        other => format!("cannot apply the patches that it begins on: {}", in_words(&other)),
    })?;
    let commit = scratch.as_commit(tree, Some(base)).map_err(|error| in_words(&error))?;
    Ok(Some(Start { commit, tree }))
}

/// Returns consumed patches in order, each with the tree that it was made on and the positions of
/// those that it includes.
pub(super) fn consumed(
    store: &Store,
    state: &RunState,
    patches: &BTreeMap<ItemIndex, Product>,
) -> Result<Vec<ConsumedPatch>, String> {
    let scratch =
        patches.keys().any(|at| !state.applied(*at).is_empty()).then(|| Scratch::new(store, state.submitted.base));
    let scratch = scratch.transpose().map_err(|error| in_words(&error))?;
    let mut starts = scratch.as_ref().map(|scratch| Starts::new(scratch, state));
    let mut all = Vec::new();
    for (at, patch, includes) in state.in_order(patches) {
        let start = match starts.as_mut().filter(|_| !state.applied(at).is_empty()) {
            Some(starts) => {
                Some(starts.start(at, &|_, product| read(store, product)).map_err(|error| in_words(&error))?)
            }
            None => None,
        };
        all.push(ConsumedPatch { patch, start, includes });
    }
    Ok(all)
}

fn read(store: &Store, patch: Product) -> Result<Vec<u8>, verified_stream::Error> {
    verified_stream::read(store, patch.oid, &[patch.sha256])
}
