//! What is kept of attempts beside the chain: transcripts and salvaged work, each under a ref of its own.
//!
//! Nothing in the chain depends on these refs; both may be deleted.

use super::attempt::Finished;
use crate::git::refs;
use crate::git::store::{self, Edit, Store};
use crate::model::format;
use crate::run::OpenRun;

/// Files transcripts and salvaged work under their refs, which nothing in the chain depends on.
pub(super) fn file(run: &OpenRun, finished: &[Finished]) -> Result<(), Error> {
    let mut transcripts = Vec::new();
    let mut salvage = Vec::new();
    for one in finished {
        let path = format::transcript_path(&one.item, one.attempt);
        if let Some(oid) = one.transcript.as_ref().and_then(|kept| kept.oid) {
            transcripts.push((path.clone(), Edit::Blob(oid)));
        }
        if let Some(salvaged) = &one.salvaged {
            salvage.push((path, Edit::Tree(salvaged.tree)));
        }
    }
    add(run.store(), &format::transcripts_ref(run.id()), &transcripts)?;
    add(run.store(), &format::salvage_ref(run.id()), &salvage)
}

/// Adds to the tree that a ref holds; only the holder of the run writes these refs.
pub(super) fn add(store: &Store, name: &str, edits: &[(String, Edit)]) -> Result<(), Error> {
    if edits.is_empty() {
        return Ok(());
    }
    let before = refs::read(store, name)?;
    let mut batch = store.batch();
    let tree = batch.edit_tree(before, edits)?;
    let _kept = batch.keep()?;
    Ok(refs::set(store, name, tree)?)
}

/// What can go wrong with keeping transcripts and salvage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
}
