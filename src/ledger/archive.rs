//! The archive of a key: one append-only chain with sealed runs, which then need no refs of their
//! own.
//!
//! Its commits have the runs' seals among their parents, so fetching or keeping the archive
//! includes the runs.

use std::collections::BTreeMap;

use crate::git::archives::{self, Contents};
use crate::git::refs;
use crate::git::retry::{self, Lost};
use crate::git::store::{Edit, Store};
use crate::ledger::chain::{self, Draft, Head, Writer};
use crate::model::archive::{ArchiveAdded, ArchivedRun, MOST_RUNS};
use crate::model::entry::{Event, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::RunId;

/// Returns the archive that a key writes in this clone, if there is one.
///
/// Archives of the same key in other clones have other names.
pub fn own(store: &Store, fingerprint: &str) -> Result<Option<LogName>, Error> {
    let listed = refs::list(store, format::ARCHIVE_REFS)?;
    let mut names = listed.iter().filter_map(|(name, _)| LogName::decode(name.strip_prefix(format::ARCHIVE_REFS)?));
    Ok(names.find(|name| name.key() == fingerprint))
}

/// Adds runs to the writer's archive, except those it already holds; returns its ref.
///
/// The refs of the runs stay.
pub fn add(writer: &Writer, runs: &Contents) -> Result<String, Error> {
    let fingerprint = writer.signer.fingerprint();
    retry::run(|| {
        let Some(name) = own(&writer.store, &fingerprint)? else { return begin(writer, runs) };
        let head = chain::tip(&writer.store, &name.archive_reference())?;
        let known = match head.commit {
            Some(tip) => archives::contents(&writer.store, tip)?.as_ref().clone(),
            None => Contents::new(),
        };
        let new: Vec<_> = runs
            .iter()
            .filter(|(run, archived)| known.get(*run) != Some(archived))
            .map(|(run, archived)| (run.clone(), *archived))
            .collect();
        let drafts = new.chunks(MOST_RUNS).map(|chunk| draft(&fingerprint, chunk)).collect();
        writer.append(&head, drafts)?.publish()?;
        Ok(head.name)
    })
}

/// Creates an archive of the writer's key with some runs; returns its ref.
fn begin(writer: &Writer, runs: &Contents) -> Result<String, Error> {
    let fingerprint = writer.signer.fingerprint();
    let runs: Vec<_> = runs.iter().map(|(run, archived)| (run.clone(), *archived)).collect();
    let first = draft(&fingerprint, &[]);
    let drafts = std::iter::once(first).chain(runs.chunks(MOST_RUNS).map(|runs| draft(&fingerprint, runs))).collect();
    let appended = writer.append(&Head::unborn(String::new()), drafts)?;
    let last = appended.links().last().expect("the first entry was just appended").hash;
    let reference = LogName::with_entry(&fingerprint, last).archive_reference();
    appended.under(reference.clone()).publish()?;
    Ok(reference)
}

/// Removes a run from an archive of this repository. The other runs move to a new archive of the
/// writer's key, because an archive can only grow.
///
/// After a failure, both archives may exist, and the old one still holds the run. Another call
/// finishes the removal.
pub fn remove(writer: &Writer, reference: &str, run: &RunId) -> Result<(), Error> {
    let store = &writer.store;
    retry::run(|| {
        let Some(tip) = refs::read_stored(store, reference)? else { return Ok(()) };
        let mut left = archives::contents(store, tip)?.as_ref().clone();
        if left.remove(run).is_none() {
            return Ok(());
        }
        for (other, other_tip) in refs::list(store, format::ARCHIVE_REFS)? {
            // An unreadable archive does not count as holding a run.
            if other != reference
                && let Ok(contents) = archives::contents(store, other_tip)
            {
                left.retain(|key, of| contents.get(key) != Some(&*of));
            }
        }
        if !left.is_empty() {
            begin(writer, &left)?;
        }
        Ok(refs::delete(store, reference, tip)?)
    })
}

fn draft(fingerprint: &str, runs: &[(RunId, ArchivedRun)]) -> Draft {
    let stamps = runs.iter().filter_map(|(run, archived)| {
        let tree = archived.stamps?;
        Some((format::archived_stamps_path(run), Edit::Tree(tree)))
    });
    let edits = stamps.collect();
    let runs: BTreeMap<RunId, ArchivedRun> = runs.iter().cloned().collect();
    let event = Event::ArchiveAdded(ArchiveAdded { runs });
    Draft { about: Subject::Archive(fingerprint.to_owned()), event, bytes: Vec::new(), edits }
}

errors! {
    /// An error in reading or writing an archive.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Chain(#[from] chain::Error): "cannot read or write the archive";
    Contents(#[from] archives::Fault): "cannot read the contents of the archive";
    #[from] Refs(refs::Error);
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        match self {
            Self::Chain(error) => error.is_lost(),
            Self::Refs(error) => error.is_lost(),
            Self::Contents(_) => false,
        }
    }
}
