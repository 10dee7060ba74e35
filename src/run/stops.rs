//! Finds the rules that stopped before their run was done.

use std::collections::BTreeMap;

use crate::git::store::{self, Store};
use crate::model::digest::Digest;
use crate::model::document::Revision;
use crate::model::judge;
use crate::model::name::{FilePath, ItemId};
use crate::model::state::RunState;

/// Returns the rules that stopped in a run as it stands, each with the reason; an error names the rule whose document
/// cannot be read.
pub(super) fn stopped(store: &Store, state: &RunState) -> Result<BTreeMap<ItemId, String>, (ItemId, Unreadable)> {
    judge::stopped(state, |name, revision| read(store, name, revision))
}

/// Adds to the state of a run which of its rules stopped, where no seal says so.
///
/// An open run is judged as it stands; a rule whose document is not here, or is damaged, counts as one that stopped. A
/// sealed run is judged too where its seal names no rule: older versions did not record them.
pub(super) fn find_stopped(store: &Store, state: &mut RunState) {
    if state.rules.is_empty() || !state.stopped.is_empty() {
        return;
    }
    state.stopped = match stopped(store, state) {
        Ok(stopped) => stopped,
        Err(_) if state.sealed => return,
        Err((rule, why)) => BTreeMap::from([(rule, why.to_string())]),
    };
}

/// Reads a document that a rule looks into, and checks its digest.
pub(super) fn read(store: &Store, name: &FilePath, revision: &Revision) -> Result<Vec<u8>, Unreadable> {
    let bytes = store.read_blob(revision.product.oid)?;
    if Digest::of(&bytes) != revision.product.sha256 {
        return Err(Unreadable::Damaged(name.clone(), revision.number));
    }
    Ok(bytes)
}

/// Why a document cannot be looked into.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unreadable {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("revision {1} of the document {0:?} is damaged: its bytes are not those that its entry names")]
    Damaged(FilePath, u64),
}
