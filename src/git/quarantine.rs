//! Holds objects outside the repository until they are accepted.
//!
//! A quarantine is a git directory that borrows the repository's objects. Its own objects become
//! visible to the repository only when promoted: packed, checked like received objects, and stored.

use std::io;
use std::path::Path;

use super::incoming;
use super::program;
use super::remote::{self, Reach};
use super::scratch_repo::{self, ScratchRepo};
use super::store::{KeepGuard, Store};
use crate::model::digest::Oid;

/// Objects outside the repository. Deleted when dropped.
pub struct Quarantine {
    repository: Store,
    scratch: ScratchRepo,
}

impl Quarantine {
    /// Creates an empty quarantine.
    pub fn new(repository: &Store) -> Result<Self, Error> {
        let mut scratch = ScratchRepo::new(repository.object_format())?;
        scratch.borrow_objects(repository)?;
        Ok(Self { repository: repository.clone(), scratch })
    }

    /// Returns a store with the objects here and in the repository.
    pub fn store(&self) -> &Store {
        self.scratch.store()
    }

    /// Returns its git directory, for an index and for settings.
    pub fn dir(&self) -> &Path {
        self.scratch.dir()
    }

    /// Fetches and checks the objects of one ref of another repository and returns its value.
    ///
    /// `from` is a remote of the repository, a URL, a path or a bundle. Writes no refs.
    pub fn fetch(&self, reach: &Reach, from: &str, reference: &str) -> Result<Oid, Error> {
        check_place(from)?;
        let is_remote = self.repository.local().remote_names().iter().any(|name| **name == *from.as_bytes());
        let path = if is_remote { None } else { remote::absolute(from) };
        let place = path.as_deref().unwrap_or(from);
        let listed = remote::list(&self.repository, reach, place, reference).map_err(unreachable_remote(from))?;
        let tip = listed.into_iter().find(|(_, name)| name == reference).map(|(tip, _)| tip);
        let tip = tip.ok_or_else(|| Error::NoRef { from: from.to_owned(), reference: reference.to_owned() })?;
        let objects = self.store().objects_dir();
        remote::fetch_apart(&self.repository, reach, &objects, place, reference).map_err(unreachable_remote(from))?;
        Ok(tip)
    }

    /// Stores the objects that `tip` reaches and `known` does not in the repository, and keeps them
    /// until a ref reaches them.
    ///
    /// Checks all objects as a host checks a push. [`Error::Refused`] names the fault.
    pub fn promote(&self, tip: Oid, known: Option<Oid>) -> Result<KeepGuard, Error> {
        incoming::take_in(&self.repository, self.store().git(), tip, known, true).map_err(|error| match error {
            incoming::Error::Refused(stderr) => Error::Refused(stderr),
            incoming::Error::Folder(error) => Error::Folder(error),
            incoming::Error::Git(error) => Error::Git(error),
        })
    }
}

fn unreachable_remote(from: &str) -> impl Fn(remote::Error) -> Error {
    move |error| Error::Unreachable(from.to_owned(), Box::new(error))
}

/// Refuses values that git would read as an option or a command.
fn check_place(from: &str) -> Result<(), Error> {
    let helper = from.split_once("::").is_some_and(|(name, _)| {
        name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_'))
    });
    if from.is_empty() || from.starts_with('-') || helper || from.chars().any(char::is_control) {
        return Err(Error::Place(from.to_owned()));
    }
    Ok(())
}

errors! {
    /// Why objects were not fetched or not promoted.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Place(String): "{0:?} is not a remote, a URL, a path or a bundle that may be fetched from";
    Unreachable(String, #[source] Box<remote::Error>): "cannot fetch from {0:?}";
    NoRef { from: String, reference: String }: "{from:?} has no {reference}";
    Refused(String): "git refuses the objects: {0}";
    Folder(#[source] io::Error): "cannot use a temporary folder";
    #[from] Scratch(scratch_repo::Error), Git(program::Error);
}
