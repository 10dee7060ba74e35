//! Objects as evidence: read by id, hashed again, never fetched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gix::objs::Kind;

use crate::git::history;
use crate::git::program;
use crate::git::store::{self, Store};
use crate::git::whole::{self, Whole};
use crate::model::bounds::{self, Meter};
use crate::model::causes::in_words;
use crate::model::digest::Oid;

/// The bytes of trees that one thread keeps, so that a tree is not inflated again as its successor's predecessor.
const KEEP: usize = 4 << 20;

/// Of objects larger than this, one thread at a time has some in its hands: what is made of the bytes takes more room than they do.
const LARGE: usize = 1 << 20;

/// Held by the thread whose turn it is.
static TURN: Mutex<()> = Mutex::new(());

/// Fewer pieces of work than this are not worth a second thread.
const SHARE_ABOVE: usize = 64;

/// One thread's handle on the object database.
pub(super) struct Objects {
    repo: gix::Repository,
    trees: RefCell<Kept>,
    /// Whether other threads work beside this one.
    shared: bool,
    /// What is held while a piece of work has large objects in its hands.
    turn: RefCell<Option<MutexGuard<'static, ()>>>,
}

#[derive(Default)]
struct Kept {
    bytes: HashMap<Oid, Rc<Vec<u8>>>,
    size: usize,
}

impl Objects {
    pub(super) fn new(store: &Store) -> Self {
        Self { repo: history::reader(store), trees: RefCell::default(), shared: false, turn: RefCell::default() }
    }

    /// Reads an object of a kind, unless it is larger than all of its kind that are read whole; bytes that do not hash to `oid` are
    /// not handed out.
    pub(super) fn read(&self, oid: Oid, kind: Kind) -> Result<Vec<u8>, Fault> {
        self.read_of(oid, kind, store::most(kind))
    }

    /// Reads an object of a kind like [`Objects::read`], of at most so many bytes.
    pub(super) fn read_of(&self, oid: Oid, kind: Kind, most: u64) -> Result<Vec<u8>, Fault> {
        self.whole(oid, kind, most).map(|object| object.bytes)
    }

    /// Reads a commit of a chain, unless those that were read before it and it come to more than a chain may.
    pub(super) fn commit(&self, oid: Oid, meter: &mut Meter) -> Result<Vec<u8>, Fault> {
        self.metered(oid, Kind::Commit, bounds::COMMIT, meter)
    }

    /// Reads an object like [`Objects::read_of`], unless those that were counted before it and it come to more than they may.
    pub(super) fn metered(&self, oid: Oid, kind: Kind, most: u64, meter: &mut Meter) -> Result<Vec<u8>, Fault> {
        let object = self.whole(oid, kind, most)?;
        meter.add(object.bytes.len() as u64, object.stored).map_err(|error| Fault::TooLarge(error.to_string()))?;
        Ok(object.bytes)
    }

    fn whole(&self, oid: Oid, kind: Kind, most: u64) -> Result<Whole, Fault> {
        let found = whole::read(&self.repo, oid, |found| if found == kind { most } else { store::most(found) });
        let object = found.map_err(|error| Fault::of(oid, &error))?.ok_or(Fault::Missing(oid))?;
        self.take_turn(object.bytes.len());
        if self.hash(object.kind, &object.bytes) != Some(oid) {
            return Err(Fault::Damaged(oid, "its bytes do not hash to its id".to_owned()));
        }
        if object.kind != kind {
            return Err(Fault::Kind(oid, object.kind, kind));
        }
        Ok(object)
    }

    /// Waits until no other thread has a large object in its hands, if this one is large; the turn ends with the piece of work.
    pub(super) fn take_turn(&self, size: usize) {
        if self.shared && size > LARGE {
            let turn = || TURN.lock().unwrap_or_else(PoisonError::into_inner);
            self.turn.borrow_mut().get_or_insert_with(turn);
        }
    }

    /// Reads a tree's bytes, from memory if they were read before.
    pub(super) fn tree(&self, oid: Oid) -> Result<Rc<Vec<u8>>, Fault> {
        if let Some(bytes) = self.trees.borrow().bytes.get(&oid) {
            return Ok(Rc::clone(bytes));
        }
        let bytes = Rc::new(self.read(oid, Kind::Tree)?);
        if bytes.len() > LARGE {
            return Ok(bytes);
        }
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
        let found = whole::header(&self.repo, oid).map_err(|error| Fault::of(oid, &error))?;
        found.map(|(_, size)| size).ok_or(Fault::Missing(oid))
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
    /// It is larger than what is read in its place, or takes more memory to put together than there is for it: why.
    TooLarge(String),
}

impl Fault {
    fn of(oid: Oid, error: &whole::Error) -> Self {
        match error {
            whole::Error::Find(_, source) => Self::Damaged(oid, source.probable_cause().to_string()),
            whole::Error::Damaged(_, why) => Self::Damaged(oid, why.clone()),
            whole::Error::TooLarge { .. } | whole::Error::Git(..) => Self::TooLarge(in_words(error)),
        }
    }

    /// Says why git could not stream a blob of so many bytes.
    pub(super) fn unread(oid: Oid, size: u64, error: &program::Error) -> Self {
        if !error.wants_memory() {
            return Self::Damaged(oid, error.to_string());
        }
        Self::TooLarge(format!(
            "object {oid} has {size} bytes and is stored as a difference, which takes more memory than there is for it; \
             `git -c core.bigFileThreshold=4m repack -adF` stores it whole"
        ))
    }

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
            Self::TooLarge(why) => f.write_str(why),
        }
    }
}

/// Does a piece of work for each of `items`, on all cores, and returns the results in order.
pub(super) fn each<T: Sync, R: Send>(store: &Store, items: &[T], work: impl Fn(&Objects, &T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let run = |chunk: &[T]| {
        let objects = Objects { shared: true, ..Objects::new(store) };
        let work = |item| {
            let done = work(&objects, item);
            objects.turn.take();
            done
        };
        // Newest first, as packs are laid out.
        let mut done: Vec<R> = chunk.iter().rev().map(work).collect();
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
