//! Time stamps of a run as two places have them: together they are all that either has.

use std::collections::BTreeMap;
use std::io;

use crate::git::store::{self, Batch, Edit, Store};
use crate::git::tree;
use crate::model::digest::Oid;

/// Returns the tree of time stamps that is `ours`, all of it, and those of `theirs` that are what their names say.
///
/// A name is the hash of what it holds, so that nothing can stand in the place of a time stamp that is still to come.
pub(super) fn united(store: &Store, ours: Option<Oid>, theirs: Oid, batch: &mut Batch) -> Result<Oid, store::Error> {
    let mut more = tree::files(store, theirs)?;
    more.retain(|(name, blob)| is_named(store, name, *blob));
    together(store, ours.unwrap_or(store.empty_tree()), more, batch)
}

/// Returns the tree that is `base` and these files; where that is more than `base`, it is in the batch.
pub(super) fn together(
    store: &Store,
    base: Oid,
    mut more: Vec<(String, Oid)>,
    batch: &mut Batch,
) -> Result<Oid, store::Error> {
    let has: BTreeMap<String, Oid> = tree::files(store, base)?.into_iter().collect();
    more.retain(|(name, blob)| has.get(name) != Some(blob));
    if more.is_empty() {
        return Ok(base);
    }
    let more: Vec<_> = more.into_iter().map(|(name, blob)| (name, Edit::Blob(blob))).collect();
    batch.edit_tree(Some(base), &more)
}

/// Returns whether a blob is here and is called what its bytes are.
fn is_named(store: &Store, name: &str, blob: Oid) -> bool {
    let read = store.copy_blob(blob, &mut io::sink());
    read.is_ok_and(|(digest, _)| name.strip_suffix(".tst") == Some(digest.hex().as_str()))
}
