//! Walks chains of commits along first parents, also in partial and shallow clones.

use gix::objs::Kind;
use gix::odb::pack::cache::lru::MemoryCappedHashmap;

use super::bounded_read;
use super::store::{Error, Store, most};
use crate::model::digest::Oid;

/// Returns true for a partial clone, where missing objects are normal.
pub fn is_partial(store: &Store) -> bool {
    let repo = store.local();
    let config = repo.config_snapshot();
    config.string("extensions.partialClone").is_some()
        || repo
            .remote_names()
            .iter()
            .any(|name| config.boolean(format!("remote.{name}.promisor").as_str()) == Some(true))
}

/// Returns true for a partial or shallow clone, where objects may be missing.
pub fn is_lazy(store: &Store) -> bool {
    is_partial(store) || is_shallow(store)
}

/// Returns true for a shallow clone.
pub fn is_shallow(store: &Store) -> bool {
    store.local().is_shallow().unwrap_or(false)
}

/// The size of a reader's cache of delta bases, in bytes.
const KEEP: usize = 4 << 20;

/// Returns a reader for many objects of a chain. Reading newest first is fastest: packs store older
/// trees as differences from newer ones.
pub fn reader(store: &Store) -> gix::Repository {
    let mut repo = store.local();
    repo.objects.set_pack_cache(|| Box::new(MemoryCappedHashmap::new(KEEP)));
    repo
}

/// Returns true if the chain that ends at `new` extends `old` along first parents only.
///
/// git's own fast-forward check would accept a chain that hides its old head behind a merge.
pub fn continues(store: &Store, old: Oid, new: Oid) -> Result<bool, Error> {
    Ok(line(store, new, Some(old))?.1)
}

/// Returns true if `new` extends or equals `old`, and false if that cannot be determined.
pub fn goes_on(store: &Store, old: Oid, new: Oid) -> bool {
    continues(store, old, new).unwrap_or(false)
}

/// Returns the commits from `tip` back to the first one or to a known commit, which is excluded.
pub fn since(store: &Store, tip: Oid, known: Option<Oid>) -> Result<Vec<Oid>, Error> {
    Ok(line(store, tip, known)?.0)
}

/// Returns the first commit of the chain that ends at `tip`, or `None` if it cannot be read to its
/// start.
pub fn first(store: &Store, tip: Oid) -> Option<Oid> {
    since(store, tip, None).ok()?.last().copied()
}

fn line(store: &Store, tip: Oid, until: Option<Oid>) -> Result<(Vec<Oid>, bool), Error> {
    let mut commits = Vec::new();
    let found = each(store, tip, until, |commit, _| {
        commits.push(commit);
        Ok(())
    })?;
    Ok((commits, found))
}

/// Visits the bytes of each commit from `tip` back to the first one, or to `until`, which is
/// excluded. Returns true if `until` was found.
pub fn each(
    store: &Store,
    tip: Oid,
    until: Option<Oid>,
    mut visit: impl FnMut(Oid, &[u8]) -> Result<(), Error>,
) -> Result<bool, Error> {
    let repo = store.local();
    let mut next = Some(tip);
    while let Some(oid) = next {
        if until == Some(oid) {
            return Ok(true);
        }
        let object = bounded_read::read(&repo, oid, most)?.ok_or(Error::Missing(oid))?;
        if object.kind != Kind::Commit {
            return Err(Error::Kind(oid, object.kind));
        }
        visit(oid, &object.bytes)?;
        let mut headers = object.bytes.split(|b| *b == b'\n').skip(1);
        next = headers.next().and_then(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok()?.parse().ok());
    }
    Ok(false)
}
