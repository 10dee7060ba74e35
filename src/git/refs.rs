//! Reads and writes refs. The only writer: every change is a compare-and-swap of one ref.
//!
//! A run in an archive counts as the value of the ref that it replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gix::refs::transaction::{Change, PreviousValue, RefEdit};
use gix::refs::{FullName, Target};

use super::archives;
use super::flush;
use super::packed;
use super::ref_lock::{self, RefLock, lock_of};
use super::ref_lookup;
use super::retry::Lost;
use super::store::{Durability, Store};
use super::trace;
use crate::model::digest::Oid;
use crate::model::format::{FETCHED_REFS, REFS};
use crate::model::place::Place;

/// How often to retry a swap whose folder a concurrent `git pack-refs` removed.
const GC_RETRIES: usize = 8;

/// Returns the value of the ref with this full name, or of its archived run, or `None` if neither
/// exists.
pub fn read(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    match read_stored(store, name)? {
        Some(found) => Ok(Some(found)),
        None => Ok(archives::find(store, name)?),
    }
}

/// Returns true if a ref with this full name exists, without archives.
pub fn is_stored(store: &Store, name: &str) -> Result<bool, Error> {
    Ok(read_stored(store, name)?.is_some())
}

/// Returns the value of the ref with this full name, without archives, or `None`.
pub fn read_stored(store: &Store, name: &str) -> Result<Option<Oid>, Error> {
    Ok(ref_lookup::find(store, name)?)
}

/// Returns all refs below a prefix that ends with a slash, with their values, sorted by name.
pub fn list(store: &Store, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
    Ok(ref_lookup::list(store, prefix)?)
}

/// Like [`list`], with the runs of archives as well.
pub fn list_with_archived(store: &Store, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
    let mut refs: BTreeMap<String, Oid> = archives::below(store, prefix)?;
    refs.extend(ref_lookup::list(store, prefix)?);
    Ok(refs.into_iter().collect())
}

/// Returns the remote-tracking refs for a place, with their values, sorted by name.
pub fn fetched_at(store: &Store, place: &Place) -> Result<Vec<(String, Oid)>, Error> {
    let mut copies = list_with_archived(store, FETCHED_REFS)?;
    copies.retain(|(name, _)| place.is_fetched_at(name));
    Ok(copies)
}

/// Returns the files below a prefix that are unreadable as refs: symbolic refs or other content.
///
/// `listed` is the result of [`list`] for the prefix. Skips a file that another process is writing.
pub fn unreadable(store: &Store, prefix: &str, listed: &[(String, Oid)]) -> Result<Vec<String>, Error> {
    let top = store.common_dir();
    let mut names = Vec::new();
    let mut folders = vec![top.join(prefix.trim_end_matches('/'))];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.map_err(list_error(prefix))?,
        };
        for entry in entries {
            let entry = entry.map_err(list_error(prefix))?;
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
    // Skip files that were created or removed since the listing.
    names.retain(|name| {
        top.join(name).symlink_metadata().is_ok() && !matches!(ref_lookup::find(store, name), Ok(Some(_)))
    });
    names.sort();
    Ok(names)
}

fn list_error(prefix: &str) -> impl Fn(std::io::Error) -> Error {
    move |error: std::io::Error| Error::Other(prefix.to_owned(), Box::new(error))
}

/// Creates a ref.
///
/// Succeeds if the ref already has this value, so success does not prove who created it.
pub fn create(store: &Store, name: &str, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::Nothing)
}

/// Creates a ref and fails if it exists, even with this value: success proves who created it.
pub fn begin(store: &Store, name: &str, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::Absent)
}

/// Moves a ref from `old` to `new`, or fails with [`Error::LostRace`] if it has another value.
pub fn advance(store: &Store, name: &str, old: Oid, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::This(old))
}

/// Sets a ref that needs no compare-and-swap, such as one that only protects objects from pruning.
pub fn set(store: &Store, name: &str, new: Oid) -> Result<(), Error> {
    swap(store, name, new, Expected::Anything)
}

/// Deletes a ref if it is still at `old`.
pub fn delete(store: &Store, name: &str, old: Oid) -> Result<(), Error> {
    unlocked(store, name, || delete_once(store, &[(name.to_owned(), old)]))
}

/// Deletes all refs if each has its expected value, otherwise none.
///
/// Writes the file of packed refs once for all.
pub fn delete_all(store: &Store, refs: &[(String, Oid)]) -> Result<(), Error> {
    if refs.is_empty() {
        return Ok(());
    }
    // A process that died here may have left locks on some of them.
    refs.iter().for_each(|(name, _)| drop(clear_stale_lock(store, name)));
    delete_once(store, refs)
}

fn delete_once(store: &Store, refs: &[(String, Oid)]) -> Result<(), Error> {
    packed::check(store)?;
    let edits = refs
        .iter()
        .map(|(name, old)| {
            let expected = PreviousValue::MustExistAndMatch(Target::Object(old.0));
            let change = Change::Delete { expected, log: gix::refs::transaction::RefLog::AndReference };
            let full_name = FullName::try_from(name.as_str()).map_err(|_| Error::Name(name.clone()))?;
            Ok(RefEdit { change, name: full_name, deref: false })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let repo = store.local();
    let mut result = repo.edit_references_as(edits.clone(), None);
    for _ in 0..GC_RETRIES {
        if !result.as_ref().is_err_and(lost_its_folder) {
            break;
        }
        result = repo.edit_references_as(edits.clone(), None);
    }
    let first = refs.first().map_or("", |(name, _)| name);
    result.map_err(|error| Error::deleting(store, first, error))?;
    refs.iter().for_each(|(name, old)| trace::wrote_ref(name, Some(*old), None));
    flush_names(store, refs.iter().map(|(name, _)| name.as_str()))
        .map_err(|error| Error::Other(first.to_owned(), Box::new(error)))
}

/// Flushes what the refs' files and the packed refs are now, if durability is strict.
fn flush_names<'a>(store: &Store, names: impl Iterator<Item = &'a str>) -> std::io::Result<()> {
    if store.durability() == Durability::Relaxed {
        return Ok(());
    }
    flush::file(&store.common_dir().join("packed-refs"))?;
    let folders: BTreeSet<PathBuf> = names.filter_map(|name| Some(path_of(store, name).parent()?.to_owned())).collect();
    folders.iter().try_for_each(|folder| flush::folder(folder))
}

/// Moves a branch from `old`, or from not existing, to `new` with a reflog, as git does.
pub fn move_branch(store: &Store, name: &str, old: Option<Oid>, new: Oid, why: &str) -> Result<(), Error> {
    let expected = old.map_or_else(|| "0".repeat(new.to_string().len()), |old| old.to_string());
    let call = store.git().args(["update-ref", "--create-reflog", "-m", why, name, &new.to_string(), &expected]);
    match call.run() {
        Ok(_) => trace::wrote_ref(name, old, Some(new)),
        Err(_) if read(store, name)? != old => return Err(Error::LostRace(name.to_owned())),
        Err(error) => return Err(Error::Other(name.to_owned(), Box::new(error))),
    }
    if store.durability() == Durability::Relaxed {
        return Ok(());
    }
    flush::file(&path_of(store, name)).map_err(|error| Error::Other(name.to_owned(), Box::new(error)))
}

/// Fails if a new branch of this name could not be created. Changes nothing.
pub fn may_make_branch(store: &Store, name: &str, at: Oid) -> Result<(), Error> {
    let input = format!("start\ncreate {name} {at}\nprepare\nabort\n");
    let call = store.git().args(["update-ref", "--stdin"]).input(input);
    call.run().map(drop).map_err(|error| Error::Other(name.to_owned(), Box::new(error)))
}

/// Removes a ref's lock file left by a killed process.
///
/// Only for refs below `refs/handoff/`, which only this program writes, and git when it packs refs.
pub fn clear_stale_lock(store: &Store, name: &str) -> Result<(), std::io::Error> {
    ref_lock::clear_left(&lock_of(&path_of(store, name)))
}

fn path_of(store: &Store, name: &str) -> PathBuf {
    store.common_dir().join(name)
}

/// The required value of a ref before a change.
#[derive(Clone, Copy)]
enum Expected {
    /// Any value.
    Anything,
    /// Absent, or already the new value.
    Nothing,
    /// Absent.
    Absent,
    /// Exactly this value.
    This(Oid),
}

fn swap(store: &Store, name: &str, new: Oid, expected: Expected) -> Result<(), Error> {
    packed::check(store)?;
    FullName::try_from(name).map_err(|_| Error::Name(name.to_owned()))?;
    let path = path_of(store, name);
    unlocked(store, name, || {
        let lock = RefLock::take(&path).map_err(swap_error(name))?;
        let lock = lock.ok_or_else(|| Error::Locked { name: name.to_owned(), lock: lock_of(&path) })?;
        let is = match expected {
            Expected::Anything if trace::is_on() => read_stored(store, name).ok().flatten(),
            Expected::Anything => None,
            // The lock prevents changes now.
            Expected::Nothing | Expected::Absent | Expected::This(_) => read(store, name)?,
        };
        let set_ref = || {
            lock.set(new, store.durability() == Durability::Strict).map_err(swap_error(name))?;
            trace::wrote_ref(name, is, Some(new));
            Ok(())
        };
        match (expected, is) {
            // An archived run becomes a ref again.
            (Expected::Nothing, Some(is)) if is == new && !is_stored(store, name)? => set_ref(),
            (Expected::Nothing, Some(is)) if is == new => Ok(()),
            (Expected::Anything, _) | (Expected::Nothing | Expected::Absent, None) => set_ref(),
            (Expected::This(old), Some(is)) if is == old => set_ref(),
            (Expected::Nothing | Expected::Absent | Expected::This(_), _) => Err(Error::LostRace(name.to_owned())),
        }
    })
}

fn swap_error(name: &str) -> impl Fn(std::io::Error) -> Error {
    move |e| Error::Other(name.to_owned(), Box::new(e))
}

/// Retries after removing a lock of a dead process.
///
/// A process killed between locking and swapping leaves its lock file.
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

/// Returns true if locking failed because the folder disappeared: `git pack-refs` may remove an
/// empty folder before our lock file is in it.
fn lost_its_folder(error: &gix::Error) -> bool {
    error.iter_errors().any(|error| {
        let io = error.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::NotFound)
    })
}

errors! {
    /// Why a ref could not be read or moved.
    #[derive(Debug, thiserror::Error)] pub enum Error = "ref";
    Name(String): "{0:?} is not the name of a ref";
    LostRace(String) "lost-race" 5: "{0} was moved by another process meanwhile";
    Locked { name: String, lock: PathBuf } "lost-race" 5: "{name} is locked: {} exists" [lock.display()];
    Stored(#[source] ref_lookup::Error): "{0}";
    Archive(#[source] archives::Error): "{0}";
    Other(String, #[source] Box<dyn std::error::Error + Send + Sync>): "{0} could not be read or written";
    #[from] Packed(packed::Error);
}

impl From<ref_lookup::Error> for Error {
    fn from(error: ref_lookup::Error) -> Self {
        match error {
            ref_lookup::Error::Packed(inner) => inner.into(),
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
    /// Returns the error of a deletion; only deletions lock `packed-refs`.
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
