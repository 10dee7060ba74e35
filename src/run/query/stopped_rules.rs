//! Finds the rules that stopped before their run was done.

use std::collections::BTreeMap;

use crate::git::store::{self, Store};
use crate::model::digest::Digest;
use crate::model::document::Revision;
use crate::model::judge;
use crate::model::name::{FilePath, ItemId};
use crate::model::state::RunState;

/// Returns the rules that stopped, each with the reason. An error names a rule whose document
/// cannot be read.
pub(crate) fn stopped(store: &Store, state: &RunState) -> Result<BTreeMap<ItemId, String>, (ItemId, Unreadable)> {
    judge::stopped(state, |name, revision| read(store, name, revision))
}

/// Adds the rules that stopped to the state of a run, unless its seal names them.
///
/// In an open run, a rule whose document is missing or damaged counts as stopped. Seals of older
/// versions name no rules, so such runs are judged too.
pub(crate) fn find_stopped(store: &Store, state: &mut RunState) {
    if state.rules.is_empty() || !state.stopped.is_empty() {
        return;
    }
    state.stopped = match stopped(store, state) {
        Ok(stopped) => stopped,
        Err(_) if state.sealed => return,
        Err((rule, why)) => BTreeMap::from([(rule, why.to_string())]),
    };
}

/// Reads a document for a rule, and checks its digest.
pub(crate) fn read(store: &Store, name: &FilePath, revision: &Revision) -> Result<Vec<u8>, Unreadable> {
    let bytes = store.read_blob(revision.product.oid)?;
    if Digest::compute(&bytes) != revision.product.sha256 {
        return Err(Unreadable::Damaged(name.clone(), revision.number));
    }
    Ok(bytes)
}

/// Reasons why a rule's document is unreadable.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unreadable {
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("revision {1} of the document {0:?} is damaged: its bytes do not match its entry")]
    Damaged(FilePath, u64),
}
