//! Writes runs, threads and their logs into one file, for use without a remote.

use std::collections::BTreeMap;
use std::io::Write;

use crate::git::program;
use crate::git::refs;
use crate::git::scratch_repo::{self, ScratchRepo};
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::format::{REFS, protected_ref};
use crate::model::log_name::LogName;
use crate::model::place::{Kind, Place};

use super::protected_files::{self, ProtectedFiles};

/// Writes a bundle of runs and threads, given by their refs, and of the logs beside those refs.
///
/// Fetched ones get the names they have at their origin. The base of a run is not included, except
/// for the files in `protected`.
///
/// Includes those logs of this repository that `outbound` selects.
pub(super) fn write(
    store: &Store,
    chains: &[(Place, String)],
    logs: &[(LogName, Oid)],
    protected: &[ProtectedFiles],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let Gathered { scratch, refs } = Gathered::new(store, chains, logs)?;
    let mut names: String = refs.keys().map(|place| place.below(REFS) + "\n").collect();
    for files in protected {
        let (name, (tree, _kept)) = (protected_ref(files.run()), files.write(scratch.store())?);
        refs::create(scratch.store(), &name, tree)?;
        names += &(name + "\n");
    }
    let call = scratch.store().git().env("GIT_NO_LAZY_FETCH", "1");
    call.args(["bundle", "create", "--quiet", "-", "--stdin"])
        .input(names)
        .stream(&mut |chunk| out.write_all(chunk))?;
    Ok(())
}

/// A temporary repository with the refs of a bundle, which borrows the objects.
pub struct Gathered {
    scratch: ScratchRepo,
    /// The refs and their commits.
    pub refs: BTreeMap<Place, Oid>,
}

impl Gathered {
    /// Returns the repository.
    pub fn store(&self) -> &Store {
        self.scratch.store()
    }

    pub(super) fn new(store: &Store, chains: &[(Place, String)], logs: &[(LogName, Oid)]) -> Result<Self, Error> {
        let mut scratch = ScratchRepo::new(store.object_format())?;
        scratch.borrow_objects(store)?;
        let mut put: BTreeMap<Place, Oid> = BTreeMap::new();
        for (place, reference) in chains {
            let head = refs::read(store, reference)?.ok_or_else(|| Error::Gone(reference.clone()))?;
            if put.insert(place.clone(), head).is_some_and(|other| other != head) {
                return Err(Error::Twice(place.kind.word(), place.name.clone()));
            }
            let folder = reference.strip_suffix(&place.below("")).unwrap_or(REFS);
            if let Some(stamps) = place.stamps()
                && let Some(tree) = refs::read(store, &stamps.below(folder))?
            {
                put.insert(stamps, tree);
            }
            let fetched = if folder == REFS { Vec::new() } else { refs::list(store, folder)? };
            for (name, oid) in fetched {
                let log =
                    name.strip_prefix(folder).and_then(Place::parse).filter(|candidate| candidate.kind == Kind::Log);
                if let Some(log) = log
                    && put.insert(log.clone(), oid).is_some_and(|other| other != oid)
                {
                    return Err(Error::TwoLogs(log.name));
                }
            }
        }
        for (log, head) in logs {
            if put.insert(Place::of_log(log), *head).is_some_and(|other| other != *head) {
                return Err(Error::TwoLogs(log.to_string()));
            }
        }
        for (place, oid) in &put {
            refs::create(scratch.store(), &place.below(REFS), *oid)?;
        }
        Ok(Self { scratch, refs: put })
    }
}

errors! {
    /// An error while writing a bundle.
    #[derive(Debug, thiserror::Error)] pub enum Error = "bundle";
    Gone(String): "there is no ref {0}";
    Twice(&'static str, String): "two different {0}s with the id {1:?} were named";
    TwoLogs(String): "they come with two different logs of the key {0}";
    Write(#[from] program::Error): "the bundle could not be written";
    #[from] ScratchRepo(scratch_repo::Error), Ref(refs::Error);
    #[from "bundle"] Protected(protected_files::Error);
}
