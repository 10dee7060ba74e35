//! Chains as git sees them: a line of first parents, and what of it may be elsewhere.

use gix::objs::Kind;
use gix::odb::pack::cache::lru::MemoryCappedHashmap;

use super::store::{Error, Store, most};
use super::whole;
use crate::model::digest::Oid;

/// Whether missing objects are what this repository was made for: a partial clone.
pub fn is_partial(store: &Store) -> bool {
    let repo = store.local();
    let config = repo.config_snapshot();
    let promised = || {
        let remotes = repo.remote_names();
        remotes.iter().any(|name| config.boolean(format!("remote.{name}.promisor").as_str()) == Some(true))
    };
    config.string("extensions.partialClone").is_some() || promised()
}

/// Whether objects may be elsewhere: in a partial clone, or a shallow one.
pub fn is_lazy(store: &Store) -> bool {
    is_partial(store) || is_shallow(store)
}

/// Returns true if this clone has only the latest part of its history.
pub fn is_shallow(store: &Store) -> bool {
    store.local().is_shallow().unwrap_or(false)
}

/// The bytes of objects in packs that a reader keeps because others build on them.
const KEEP: usize = 4 << 20;

/// Returns a handle for reading many objects of a chain, best the newest first: a pack holds an older tree as what differs
/// from the next.
pub fn reader(store: &Store) -> gix::Repository {
    let mut repo = store.local();
    repo.objects.set_pack_cache(|| Box::new(MemoryCappedHashmap::new(KEEP)));
    repo
}

/// Returns whether the chain that ends at `new` goes on from `old`, along first parents only.
///
/// A chain has no other parents; git's own idea of a fast-forward would take one that hides its old head behind a merge.
pub fn continues(store: &Store, old: Oid, new: Oid) -> Result<bool, Error> {
    Ok(line(store, new, Some(old))?.1)
}

/// Returns whether it does, or is the same; not so where that cannot be told.
pub fn goes_on(store: &Store, old: Oid, new: Oid) -> bool {
    continues(store, old, new).unwrap_or(false)
}

/// Returns the commits from `tip` on back to the first, or to a known one, which is not among them.
pub fn since(store: &Store, tip: Oid, known: Option<Oid>) -> Result<Vec<Oid>, Error> {
    Ok(line(store, tip, known)?.0)
}

/// Returns the first commit of the chain that ends at `tip`, or `None` if the chain cannot be read to its beginning.
pub fn first(store: &Store, tip: Oid) -> Option<Oid> {
    since(store, tip, None).ok()?.last().copied()
}

fn line(store: &Store, tip: Oid, until: Option<Oid>) -> Result<(Vec<Oid>, bool), Error> {
    let repo = store.local();
    let mut commits = Vec::new();
    let mut next = Some(tip);
    while let Some(oid) = next {
        if until == Some(oid) {
            return Ok((commits, true));
        }
        let object = whole::read(&repo, oid, most)?.ok_or(Error::Missing(oid))?;
        if object.kind != Kind::Commit {
            return Err(Error::Kind(oid, object.kind));
        }
        commits.push(oid);
        let mut headers = object.bytes.split(|b| *b == b'\n').skip(1);
        let parent =
            headers.next().and_then(|line| std::str::from_utf8(line.strip_prefix(b"parent ")?).ok()?.parse().ok());
        next = parent;
    }
    Ok((commits, false))
}
