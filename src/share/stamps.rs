//! Time stamps of a run as two places have them: together they are all that either has.

use std::io;

use crate::git::store::{self, Edit, Kept, Store};
use crate::git::tree;
use crate::model::digest::Oid;

/// Returns the tree of time stamps that is `ours`, all of it, and those of `theirs` that are what their names say.
///
/// A name is the hash of what it holds, so that nothing can stand in the place of a time stamp that is still to come. The tree
/// is kept as long as what is returned with it.
pub(super) fn united(store: &Store, ours: Option<Oid>, theirs: Oid) -> Result<(Oid, Kept), store::Error> {
    let mut more = tree::files(store, theirs)?;
    more.retain(|(name, blob)| is_named(store, name, *blob));
    let more: Vec<_> = more.into_iter().map(|(name, blob)| (name, Edit::Blob(blob))).collect();
    let mut batch = store.batch();
    let tree = batch.edit_tree(ours, &more)?;
    Ok((tree, batch.keep()?))
}

/// Returns whether a blob is here and is called what its bytes are.
fn is_named(store: &Store, name: &str, blob: Oid) -> bool {
    let read = store.copy_blob(blob, &mut io::sink());
    read.is_ok_and(|(digest, _)| name.strip_suffix(".tst") == Some(digest.hex().as_str()))
}
