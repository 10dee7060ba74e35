//! Looks up refs by their exact names.

use super::packed;
use super::store::Store;
use crate::model::digest::Oid;

/// Returns the value of the ref with this full name, or `None`.
///
/// Follows neither git's name rules nor symbolic refs.
pub(super) fn find(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    packed::check(store)?;
    let repo = store.local();
    let found = repo.try_find_reference(name).map_err(|e| Error::Find(name.to_owned(), Box::new(e)))?;
    let Some(found) = found.filter(|found| found.name().as_bstr() == name) else { return Ok(None) };
    match found.target() {
        gix::refs::TargetRef::Object(id) => Ok(Some(Oid(id.to_owned()))),
        gix::refs::TargetRef::Symbolic(target) => Err(Error::Symbolic(name.to_owned(), target.as_bstr().to_string())),
    }
}

/// Returns all refs below a prefix that ends with a slash, with their values, sorted by name.
pub(super) fn list(store: &Store, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
    packed::check(store)?;
    let repo = store.local();
    let platform = repo.references().map_err(find_error(prefix))?;
    let found = platform.prefixed(prefix).map_err(find_error(prefix))?;
    let mut refs: Vec<(String, Oid)> = found
        .filter_map(Result::ok)
        .filter_map(|r| Some((r.name().as_bstr().to_string(), Oid(r.try_id()?.detach()))))
        .collect();
    refs.sort();
    Ok(refs)
}

fn find_error(prefix: &str) -> impl Fn(gix::Error) -> Error {
    move |e: gix::Error| Error::Find(prefix.to_owned(), Box::new(e))
}

errors! {
    /// Why a ref could not be read.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Symbolic(String, String): "{0} is a symbolic ref, to {1}";
    Find(String, #[source] Box<dyn std::error::Error + Send + Sync>): "{0} could not be read";
    #[from] Packed(packed::Error);
}
