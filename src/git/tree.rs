//! What lies directly in a tree.

use gix::objs::{Kind, TreeRefIter};

use super::store::{Error, Store};
use crate::model::digest::Oid;

/// Returns the plain files in a tree, by name; what else is in it is left out.
pub fn files(store: &Store, tree: Oid) -> Result<Vec<(String, Oid)>, Error> {
    let (kind, bytes) = store.read(tree)?;
    if kind != Kind::Tree {
        return Err(Error::Kind(tree, kind));
    }
    let entries = TreeRefIter::from_bytes(&bytes, store.hash_kind()).map_while(Result::ok);
    let files = entries.filter(|entry| entry.mode.is_blob());
    let named = files
        .filter_map(|entry| Some((std::str::from_utf8(entry.filename).ok()?.to_owned(), Oid(entry.oid.to_owned()))));
    Ok(named.collect())
}
