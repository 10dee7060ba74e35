//! Objects as evidence: read by id, hashed again, never fetched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gix::objs::Kind;

use crate::git::bounded_read::{self, Whole};
use crate::git::history;
use crate::git::program;
use crate::git::store::{self, Store};
use crate::model::bounds::{self, Meter};
use crate::model::causes::in_words;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Product;

/// The size of the tree cache for each thread. A tree is needed again as the predecessor of the
/// next one.
const MAX_CACHED_BYTES: usize = 4 << 20;

/// Only one thread at a time holds objects above this size, because parsed objects use even more
/// memory.
const LARGE_OBJECT: usize = 1 << 20;

static TURN: Mutex<()> = Mutex::new(());

const MIN_SHARED_ITEMS: usize = 64;

/// One thread's handle on the object database.
pub(super) struct Objects {
    repo: gix::Repository,
    trees: RefCell<TreeCache>,
    shared: bool,
    /// The lock for large objects, held until the end of an item.
    turn: RefCell<Option<MutexGuard<'static, ()>>>,
}

#[derive(Default)]
struct TreeCache {
    bytes: HashMap<Oid, Rc<Vec<u8>>>,
    size: usize,
}

impl Objects {
    pub(super) fn new(store: &Store) -> Self {
        Self { repo: history::reader(store), trees: RefCell::default(), shared: false, turn: RefCell::default() }
    }

    /// Reads an object of at most the limit of its kind, and checks its hash.
    pub(super) fn read(&self, oid: Oid, kind: Kind) -> Result<Vec<u8>, Fault> {
        self.read_of(oid, kind, store::most(kind))
    }

    /// Reads an object of at most `most` bytes, and checks its hash.
    pub(super) fn read_of(&self, oid: Oid, kind: Kind, most: u64) -> Result<Vec<u8>, Fault> {
        self.whole(oid, kind, most).map(|object| object.bytes)
    }

    /// Reads a commit of a chain; `meter` limits the size of the whole chain.
    pub(super) fn commit(&self, oid: Oid, meter: &mut Meter) -> Result<Vec<u8>, Fault> {
        self.metered(oid, Kind::Commit, bounds::COMMIT, meter)
    }

    /// Reads an object like [`Objects::read_of`]; `meter` limits the size of all objects it counts.
    pub(super) fn metered(&self, oid: Oid, kind: Kind, most: u64, meter: &mut Meter) -> Result<Vec<u8>, Fault> {
        let object = self.whole(oid, kind, most)?;
        meter.add(object.bytes.len() as u64, object.stored).map_err(|error| Fault::TooLarge(error.to_string()))?;
        Ok(object.bytes)
    }

    /// Reads the bytes that an entry names, at most `most`. Only in a partial clone may they be
    /// missing.
    pub(super) fn read_product(&self, product: &Product, lazy: bool, most: u64) -> Result<Vec<u8>, Fault> {
        compared(product, self.read_of(product.oid, Kind::Blob, most).map_err(|fault| fault.of_blob(lazy))?)
    }

    /// Reads bytes like [`Objects::read_product`]; `meter` limits the size of all that it counts.
    pub(super) fn read_product_metered(
        &self,
        product: &Product,
        lazy: bool,
        most: u64,
        meter: &mut Meter,
    ) -> Result<Vec<u8>, Fault> {
        let read = self.metered(product.oid, Kind::Blob, most, meter);
        compared(product, read.map_err(|fault| fault.of_blob(lazy))?)
    }

    fn whole(&self, oid: Oid, kind: Kind, most: u64) -> Result<Whole, Fault> {
        let found = bounded_read::read(&self.repo, oid, |found| if found == kind { most } else { store::most(found) });
        let object = found.map_err(|error| Fault::from_read(oid, &error))?.ok_or(Fault::Missing(oid))?;
        self.take_turn(object.bytes.len());
        if self.hash(object.kind, &object.bytes) != Some(oid) {
            return Err(Fault::Damaged(oid, "its bytes do not hash to its id".to_owned()));
        }
        if object.kind != kind {
            return Err(Fault::Kind(oid, object.kind, kind));
        }
        Ok(object)
    }

    /// Waits for the lock for large objects, if `size` is large. The lock is released after the
    /// item.
    pub(super) fn take_turn(&self, size: usize) {
        if self.shared && size > LARGE_OBJECT {
            self.turn.borrow_mut().get_or_insert_with(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Reads a tree, or takes it from the cache.
    pub(super) fn tree(&self, oid: Oid) -> Result<Rc<Vec<u8>>, Fault> {
        if let Some(bytes) = self.trees.borrow().bytes.get(&oid) {
            return Ok(Rc::clone(bytes));
        }
        let bytes = Rc::new(self.read(oid, Kind::Tree)?);
        if bytes.len() > LARGE_OBJECT {
            return Ok(bytes);
        }
        let mut cache = self.trees.borrow_mut();
        if cache.size > MAX_CACHED_BYTES {
            *cache = TreeCache::default();
        }
        cache.size += bytes.len();
        cache.bytes.insert(oid, Rc::clone(&bytes));
        Ok(bytes)
    }

    pub(super) fn size(&self, oid: Oid) -> Result<u64, Fault> {
        let found = bounded_read::header(&self.repo, oid).map_err(|error| Fault::from_read(oid, &error))?;
        found.map(|(_, size)| size).ok_or(Fault::Missing(oid))
    }

    /// Returns git's id of `bytes`, or `None` for a SHA-1 collision attack.
    pub(super) fn hash(&self, kind: Kind, bytes: &[u8]) -> Option<Oid> {
        gix::objs::compute_hash(self.repo.object_hash(), kind, bytes).ok().map(Oid)
    }

    /// Returns a hasher for the id of a blob with `size` bytes.
    pub(super) fn blob_hasher(&self, size: u64) -> gix::hash::Hasher {
        let mut hasher = gix::hash::hasher(self.repo.object_hash());
        hasher.update(format!("blob {size}\0").as_bytes());
        hasher
    }
}

/// Compares bytes with their digest and size in an entry.
fn compared(product: &Product, bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let found = Digest::compute(&bytes);
    let is_same = found == product.sha256 && bytes.len() as u64 == product.size;
    if is_same { Ok(bytes) } else { Err(Fault::Differs { expected: product.sha256, found }) }
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// Missing, in a repository that may be partial.
    Missing(Oid),
    /// Missing from a complete repository.
    Gone(Oid),
    /// Unreadable, or its bytes do not hash to its id.
    Damaged(Oid, String),
    /// Another type: found, expected.
    Kind(Oid, Kind, Kind),
    /// Above a size or memory limit, with the reason.
    TooLarge(String),
    /// Other bytes than an entry names.
    Differs { expected: Digest, found: Digest },
}

impl Fault {
    fn from_read(oid: Oid, error: &bounded_read::Error) -> Self {
        match error {
            bounded_read::Error::Find(_, source) => Self::Damaged(oid, source.probable_cause().to_string()),
            bounded_read::Error::Damaged(_, why) => Self::Damaged(oid, why.clone()),
            bounded_read::Error::TooLarge { .. } | bounded_read::Error::Git(..) => Self::TooLarge(in_words(error)),
        }
    }

    /// Returns the fault for a blob of `size` bytes that git could not stream.
    pub(super) fn unread(oid: Oid, size: u64, error: &program::Error) -> Self {
        if !error.wants_memory() {
            return Self::Damaged(oid, error.to_string());
        }
        Self::TooLarge(format!(
            "object {oid} has {size} bytes and is stored as a delta, which needs more memory than is available; \
             `git -c core.bigFileThreshold=4m repack -adF` stores it whole"
        ))
    }

    /// Turns a missing blob into one that is gone, unless the repository is a partial clone.
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
            Self::Kind(oid, found, expected) => write!(f, "object {oid} is a {found}, not a {expected}"),
            Self::TooLarge(why) => f.write_str(why),
            Self::Differs { expected, found } => {
                write!(f, "its bytes hash to {}, and the entry names {}", found.short(), expected.short())
            }
        }
    }
}

/// Applies `work` to each item, on several threads, and returns the results in order.
pub(super) fn map_objects<T: Sync, R: Send>(
    store: &Store,
    items: &[T],
    work: impl Fn(&Objects, &T) -> R + Sync,
) -> Vec<R> {
    // Each answer reads the files of control groups.
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(8)));
    let run = |chunk: &[T]| {
        let objects = Objects { shared: true, ..Objects::new(store) };
        // Newest first, in the order of packs.
        let newest_first = chunk.iter().rev();
        let mut done: Vec<R> =
            newest_first.map(|item| work(&objects, item)).inspect(|_| drop(objects.turn.take())).collect();
        done.reverse();
        done
    };
    if *THREADS == 1 || items.len() < MIN_SHARED_ITEMS {
        return run(items);
    }
    std::thread::scope(|scope| {
        let chunks = items.chunks(items.len().div_ceil(*THREADS));
        let handles: Vec<_> = chunks.map(|chunk| scope.spawn(|| run(chunk))).collect();
        let joined = handles.into_iter().map(|handle| handle.join().expect("reading evidence does not panic"));
        joined.flatten().collect()
    })
}
