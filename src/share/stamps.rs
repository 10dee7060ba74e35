//! Merges the time stamps of a run or thread from two places.

use std::collections::BTreeMap;
use std::io;

use crate::git::store::{self, Batch, Edit, Store};
use crate::git::tree;
use crate::model::digest::Oid;
use crate::model::format;

/// Returns the union of the trees `ours` and `theirs`, without files of `theirs` that do not match
/// their names.
///
/// A file's name is its hash, so a false file cannot take the name of a time stamp.
pub(super) fn united(store: &Store, ours: Option<Oid>, theirs: Oid, batch: &mut Batch) -> Result<Oid, store::Error> {
    let mut more = tree::files(store, theirs)?;
    more.retain(|(name, blob)| is_named(store, name, *blob));
    together(store, ours.unwrap_or(store.empty_tree()), more, batch)
}

/// Returns the tree `base` with these files added; a new tree is written to the batch.
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

/// Returns true if a blob is here and matches the hash in its name. The number of entries in the
/// name is not checked.
fn is_named(store: &Store, name: &str, blob: Oid) -> bool {
    let read = store.copy_blob(blob, &mut io::sink());
    let entries = format::parse_thread_stamp(name).map(|(entries, _)| entries);
    read.is_ok_and(|(digest, _)| name == format::stamp_name(entries, digest))
}
