//! The only writer of refs. Every change is a compare-and-swap of one ref.
//!
//! What an archive holds counts as the value of the ref that it took the place of, here as for everybody who reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gix::refs::transaction::{Change, PreviousValue, RefEdit};
use gix::refs::{FullName, Target};

use super::archives;
use super::packed;
use super::race::Lost;
use super::ref_lock::{self, RefLock, lock_of};
use super::store::{Durability, Store};
use super::stored;
use crate::model::digest::Oid;
use crate::model::format::{FETCHED_REFS, REFS};
use crate::model::place::Place;

/// How often a swap is tried again that lost its folder to a concurrent `git pack-refs`.
const GC_RETRIES: usize = 8;

/// Returns what the ref of exactly this full name stands for: what it points at, and, where it does not exist, what an archive holds in
/// its place; none where there is neither.
pub fn read(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    match read_stored(store, name)? {
        Some(found) => Ok(Some(found)),
        None => Ok(archives::find(store, name)?),
    }
}

/// Returns whether there is a ref of exactly this full name, whatever archives hold.
pub fn is_stored(store: &Store, name: &str) -> Result<bool, Error> {
    Ok(read_stored(store, name)?.is_some())
}

/// Returns what the ref of exactly this full name points at, whatever archives hold; none where there is none.
pub fn read_stored(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    Ok(stored::find(store, name)?)
}

/// Returns all refs that there are below a prefix that ends with a slash, with what they point at, in order of name.
pub fn list(store: &Store, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
    Ok(stored::list(store, prefix)?)
}

/// Returns what [`list`] does, and what archives hold in the places of refs that there are not.
pub fn list_with_archived(store: &Store, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
    let mut refs: BTreeMap<String, Oid> = archives::below(store, prefix)?;
    refs.extend(stored::list(store, prefix)?);
    Ok(refs.into_iter().collect())
}

/// Returns the refs at which copies of what lies in a place were fetched, with what they point at, in order of name.
pub fn fetched_at(store: &Store, place: &Place) -> Result<Vec<(String, Oid)>, Error> {
    let mut copies = list_with_archived(store, FETCHED_REFS)?;
    copies.retain(|(name, _)| place.is_fetched_at(name));
    Ok(copies)
}

/// Returns the names of the files below a prefix that are refs nobody can read: symbolic, or filled with something else.
///
/// `listed` is what [`list`] returns for the prefix; a file that another process is just writing is none.
pub fn unreadable(store: &Store, prefix: &str, listed: &[(String, Oid)]) -> Result<Vec<String>, Error> {
    let top = store.common_dir();
    let failed = |error: std::io::Error| Error::Other(prefix.to_owned(), Box::new(error));
    let mut names = Vec::new();
    let mut folders = vec![top.join(prefix.trim_end_matches('/'))];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = path.strip_prefix(&top).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "lock")
                && listed.binary_search_by(|(listed, _)| listed.cmp(&name)).is_err()
            {
                names.push(name);
            }
        }
    }
    // One that was made, or taken away, since they were listed is no ref that cannot be read.
    names.retain(|name| top.join(name).symlink_metadata().is_ok() && !matches!(stored::find(store, name), Ok(Some(_))));
    names.sort();
    Ok(names)
}

/// Creates a ref that must not exist.
///
/// Creating it with the value it already has succeeds as well, so success does not prove who created it.
pub fn create(store: &Store, name: &str, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::Nothing)
}

/// Creates a ref that must not exist, not even with this value: success proves who created it.
pub fn begin(store: &Store, name: &str, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::Nobody)
}

/// Moves a ref from `old` to `new`; fails with [`Error::LostRace`] if it is anywhere else.
pub fn advance(store: &Store, name: &str, old: Oid, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::This(old))
}

/// Sets a ref that nobody's safety depends on, such as one that keeps objects from being pruned.
pub fn set(store: &Store, name: &str, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::Anything)
}

/// Deletes a ref if it is still at `old`.
pub fn delete(store: &Store, name: &str, old: Oid) -> Result<(), Error> {
    unlocked(store, name, || delete_once(store, &[(name.to_owned(), old)]))
}

/// Deletes refs, each if it is still where it is said to be; all of them or none.
///
/// The file of packed refs is written once for all of them.
pub fn delete_all(store: &Store, refs: &[(String, Oid)]) -> Result<(), Error> {
    if refs.is_empty() {
        return Ok(());
    }
    // What a process left that died here is its lock, on some of them.
    refs.iter().for_each(|(name, _)| drop(clear_stale_lock(store, name)));
    delete_once(store, refs)
}

fn delete_once(store: &Store, refs: &[(String, Oid)]) -> Result<(), Error> {
    packed::check(store)?;
    let edit = |(name, old): &(String, Oid)| {
        let expected = PreviousValue::MustExistAndMatch(Target::Object(old.0));
        let change = Change::Delete { expected, log: gix::refs::transaction::RefLog::AndReference };
        let named = FullName::try_from(name.as_str()).map_err(|_| Error::Name(name.clone()))?;
        Ok(RefEdit { change, name: named, deref: false })
    };
    let edits = refs.iter().map(edit).collect::<Result<Vec<_>, Error>>()?;
    let repo = store.local();
    let mut result = repo.edit_references_as(edits.clone(), None);
    for _ in 0..GC_RETRIES {
        if !result.as_ref().is_err_and(lost_its_folder) {
            break;
        }
        result = repo.edit_references_as(edits.clone(), None);
    }
    let first = refs.first().map_or("", |(name, _)| name);
    result.map(drop).map_err(|error| Error::deleting(store, first, error))
}

/// Moves a branch of the user's from `old`, or from not being there, to `new`, with its reflog, as git itself does it.
pub fn move_branch(store: &Store, name: &str, old: Option<Oid>, new: Oid, why: &str) -> Result<(), Error> {
    let expected = old.map_or_else(|| "0".repeat(new.to_string().len()), |old| old.to_string());
    let call = store.git().args(["update-ref", "--create-reflog", "-m", why, name, &new.to_string(), &expected]);
    match call.run() {
        Ok(_) => Ok(()),
        Err(_) if read(store, name)? != old => Err(Error::LostRace(name.to_owned())),
        Err(error) => Err(Error::Other(name.to_owned(), Box::new(error))),
    }
}

/// Fails where a branch that is not there could not be made; makes nothing.
pub fn may_make_branch(store: &Store, name: &str, at: Oid) -> Result<(), Error> {
    let told = format!("start\ncreate {name} {at}\nprepare\nabort\n");
    let call = store.git().args(["update-ref", "--stdin"]).input(told);
    call.run().map(drop).map_err(|error| Error::Other(name.to_owned(), Box::new(error)))
}

/// Removes the lock file that a killed process left on a ref.
///
/// Only for refs below `refs/handoff/`, which nobody but us writes, and git when it packs refs.
pub fn clear_stale_lock(store: &Store, name: &str) -> Result<(), std::io::Error> {
    ref_lock::clear_left(&lock_of(&path_of(store, name)))
}

fn path_of(store: &Store, name: &str) -> PathBuf {
    store.common_dir().join(name)
}

/// What a ref must be before it is moved.
#[derive(Clone, Copy)]
enum Expected {
    /// Whatever it is.
    Anything,
    /// Not there, or there already with the new value.
    Nothing,
    /// Not there.
    Nobody,
    /// Here.
    This(Oid),
}

fn swap(store: &Store, name: &str, new: Oid, expected: Expected) -> Result<(), Error> {
    packed::check(store)?;
    FullName::try_from(name).map_err(|_| Error::Name(name.to_owned()))?;
    let path = path_of(store, name);
    unlocked(store, name, || {
        let other = |e| Error::Other(name.to_owned(), Box::new(e));
        let lock = RefLock::take(&path).map_err(other)?;
        let lock = lock.ok_or_else(|| Error::Locked { name: name.to_owned(), lock: lock_of(&path) })?;
        let is = match expected {
            Expected::Anything => None,
            // Nobody can change it now.
            Expected::Nothing | Expected::Nobody | Expected::This(_) => read(store, name)?,
        };
        match (expected, is) {
            // What an archive holds comes to be a ref again.
            (Expected::Nothing, Some(is)) if is == new && !is_stored(store, name)? => {
                lock.set(new, store.durability() == Durability::Strict).map_err(other)
            }
            (Expected::Nothing, Some(is)) if is == new => Ok(()),
            (Expected::Anything, _) | (Expected::Nothing | Expected::Nobody, None) => {
                lock.set(new, store.durability() == Durability::Strict).map_err(other)
            }
            (Expected::This(old), Some(is)) if is == old => {
                lock.set(new, store.durability() == Durability::Strict).map_err(other)
            }
            (Expected::Nothing | Expected::Nobody | Expected::This(_), _) => Err(Error::LostRace(name.to_owned())),
        }
    })
}

/// Tries what a lock stands in the way of again, if that lock turns out to be a dead process's.
///
/// A process that was killed between taking the lock and the swap leaves its lock file, whatever ref it was about.
fn unlocked(store: &Store, name: &str, attempt: impl Fn() -> Result<(), Error>) -> Result<(), Error> {
    match attempt() {
        Err(Error::Locked { lock, .. })
            if name.starts_with(REFS)
                && lock == lock_of(&path_of(store, name))
                && clear_stale_lock(store, name).is_ok() =>
        {
            attempt()
        }
        other => other,
    }
}

/// Returns whether a ref could not be locked because its folder went away: packing refs removes empty ones, and may do so
/// between our making the folder and our making the lock file.
fn lost_its_folder(error: &gix::Error) -> bool {
    error.iter_errors().any(|error| {
        let io = error.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::NotFound)
    })
}

/// Why a ref could not be read or moved.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0:?} is not the name of a ref")]
    Name(String),
    #[error("{0} was moved by someone else in the meantime")]
    LostRace(String),
    #[error("{name} is locked: {} exists", lock.display())]
    Locked { name: String, lock: PathBuf },
    #[error(transparent)]
    Stored(stored::Error),
    #[error(transparent)]
    Packed(packed::Error),
    #[error(transparent)]
    Archive(archives::Error),
    #[error("{0} could not be read or written")]
    Other(String, #[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<packed::Error> for Error {
    fn from(error: packed::Error) -> Self {
        Self::Packed(error)
    }
}

impl From<stored::Error> for Error {
    fn from(error: stored::Error) -> Self {
        match error {
            stored::Error::Packed(inner) => inner.into(),
            other => Self::Stored(other),
        }
    }
}

impl From<archives::Error> for Error {
    fn from(error: archives::Error) -> Self {
        match error {
            archives::Error::Refs(inner) => inner.into(),
            other @ archives::Error::Unreadable(..) => Self::Archive(other),
        }
    }
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::LostRace(_))
    }
}

impl Error {
    /// Returns what kept a ref from being deleted; only for that is `packed-refs` locked.
    fn deleting(store: &Store, name: &str, error: gix::Error) -> Self {
        if error.is_conflict() {
            return Self::LostRace(name.to_owned());
        }
        if !error.is_retryable() {
            return Self::Other(name.to_owned(), Box::new(error));
        }
        let packed = lock_of(&store.common_dir().join("packed-refs"));
        let lock = if packed.exists() { packed } else { lock_of(&path_of(store, name)) };
        Self::Locked { name: name.to_owned(), lock }
    }
}
