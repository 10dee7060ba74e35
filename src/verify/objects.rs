//! Objects as evidence: read by id, hashed again, never fetched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use gix::objs::Kind;

use crate::git::history;
use crate::git::store::Store;
use crate::model::digest::Oid;

/// The bytes of trees that one thread keeps, so that a tree is not inflated again as its successor's predecessor.
const KEEP: usize = 4 << 20;

/// Fewer pieces of work than this are not worth a second thread.
const SHARE_ABOVE: usize = 64;

/// One thread's handle on the object database.
pub(super) struct Objects {
    repo: gix::Repository,
    trees: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: HashMap<Oid, Rc<Vec<u8>>>,
    size: usize,
}

impl Objects {
    pub(super) fn new(store: &Store) -> Self {
        Self { repo: history::reader(store), trees: RefCell::default() }
    }

    /// Reads an object of a kind; bytes that do not hash to `oid` are not handed out.
    pub(super) fn read(&self, oid: Oid, kind: Kind) -> Result<Vec<u8>, Fault> {
        let found =
            self.repo.try_find_object(oid.0).map_err(|e| Fault::Damaged(oid, e.probable_cause().to_string()))?;
        let mut object = found.ok_or(Fault::Missing(oid))?;
        if self.hash(object.kind, &object.data) != Some(oid) {
            return Err(Fault::Damaged(oid, "its bytes do not hash to its id".to_owned()));
        }
        if object.kind != kind {
            return Err(Fault::Kind(oid, object.kind, kind));
        }
        Ok(std::mem::take(&mut object.data))
    }

    /// Reads a tree's bytes, from memory if they were read before.
    pub(super) fn tree(&self, oid: Oid) -> Result<Rc<Vec<u8>>, Fault> {
        if let Some(bytes) = self.trees.borrow().bytes.get(&oid) {
            return Ok(Rc::clone(bytes));
        }
        let bytes = Rc::new(self.read(oid, Kind::Tree)?);
        let mut kept = self.trees.borrow_mut();
        if kept.size > KEEP {
            *kept = Kept::default();
        }
        kept.size += bytes.len();
        kept.bytes.insert(oid, Rc::clone(&bytes));
        Ok(bytes)
    }

    /// Returns the size of an object that is here.
    pub(super) fn size(&self, oid: Oid) -> Result<u64, Fault> {
        let header = self.repo.try_find_header(oid.0);
        let found = header.map_err(|e| Fault::Damaged(oid, e.probable_cause().to_string()))?;
        found.map(|header| header.size()).ok_or(Fault::Missing(oid))
    }

    /// Returns the name that git gives `bytes`; none for the two halves of a SHA-1 collision.
    pub(super) fn hash(&self, kind: Kind, bytes: &[u8]) -> Option<Oid> {
        gix::objs::compute_hash(self.repo.object_hash(), kind, bytes).ok().map(Oid)
    }

    /// Returns a running hash that names a blob of `size` bytes.
    pub(super) fn blob_hasher(&self, size: u64) -> gix::hash::Hasher {
        let mut hasher = gix::hash::hasher(self.repo.object_hash());
        hasher.update(format!("blob {size}\0").as_bytes());
        hasher
    }
}

/// Why an object is no evidence.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// It is not in the repository.
    Missing(Oid),
    /// It is not in the repository, which is none that leaves out what it is.
    Gone(Oid),
    /// Its bytes cannot be read or are not those that its id names.
    Damaged(Oid, String),
    /// It is something else: found, wanted.
    Kind(Oid, Kind, Kind),
}

impl Fault {
    /// Makes a blob that is not here one that is gone, unless the repository is a partial clone.
    pub(super) fn of_blob(self, lazy: bool) -> Self {
        match self {
            Self::Missing(oid) if !lazy => Self::Gone(oid),
            fault => fault,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(oid) | Self::Gone(oid) => write!(f, "object {oid} is not in the repository"),
            Self::Damaged(oid, why) => write!(f, "object {oid} is damaged: {why}"),
            Self::Kind(oid, found, wanted) => write!(f, "object {oid} is a {found}, not a {wanted}"),
        }
    }
}

/// Does a piece of work for each of `items`, on all cores, and returns the results in order.
pub(super) fn each<T: Sync, R: Send>(store: &Store, items: &[T], work: impl Fn(&Objects, &T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let run = |chunk: &[T]| {
        let objects = Objects::new(store);
        // Newest first, as packs are laid out.
        let mut done: Vec<R> = chunk.iter().rev().map(|item| work(&objects, item)).collect();
        done.reverse();
        done
    };
    if threads == 1 || items.len() < SHARE_ABOVE {
        return run(items);
    }
    std::thread::scope(|scope| {
        let chunks = items.chunks(items.len().div_ceil(threads));
        let handles: Vec<_> = chunks.map(|chunk| scope.spawn(|| run(chunk))).collect();
        let joined = handles.into_iter().map(|handle| handle.join().expect("reading evidence does not panic"));
        joined.flatten().collect()
    })
}
