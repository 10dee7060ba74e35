//! The archive of a key: one append-only chain that holds sealed runs, so that these need no refs of their own.
//!
//! Its commits have the runs' seals among their parents, so that whatever keeps or carries the archive keeps and carries them.

use std::collections::BTreeMap;

use crate::git::archives::{self, Contents};
use crate::git::race::{self, Lost};
use crate::git::refs;
use crate::git::store::{Edit, Store};
use crate::ledger::chain::{self, Draft, Head, Writer};
use crate::model::archive::{ArchiveAdded, ArchivedRun, MOST_RUNS};
use crate::model::entry::{Event, Subject};
use crate::model::format;
use crate::model::log_name::LogName;
use crate::model::name::RunId;

/// Returns the archive that a key writes in this clone, if there is one.
///
/// Its name tells it from those of the same key in other clones, so that none is ever in another's way.
pub fn own(store: &Store, fingerprint: &str) -> Result<Option<LogName>, Error> {
    let listed = refs::list(store, format::ARCHIVE_REFS)?;
    let mut names = listed.iter().filter_map(|(name, _)| LogName::decode(name.strip_prefix(format::ARCHIVE_REFS)?));
    Ok(names.find(|name| name.key() == fingerprint))
}

/// Adds runs to the writer's archive, unless it says just that of them already; returns its ref.
///
/// Nothing else changes: the refs of the runs are there as they were.
pub fn add(writer: &Writer, runs: &Contents) -> Result<String, Error> {
    let fingerprint = writer.signer.fingerprint();
    race::run(|| {
        let name = own(&writer.store, &fingerprint)?;
        let head = match &name {
            Some(name) => chain::tip(&writer.store, &name.archive_reference())?,
            None => Head::unborn(String::new()),
        };
        let known = match head.commit {
            Some(tip) => archives::contents(&writer.store, tip)?.as_ref().clone(),
            None => Contents::new(),
        };
        let is_new = |(run, held): &(&RunId, &ArchivedRun)| known.get(*run) != Some(held);
        let new: Vec<_> = runs.iter().filter(is_new).map(|(run, held)| (run.clone(), *held)).collect();
        let begun = name.is_none().then(|| draft(&fingerprint, &[]));
        let drafts: Vec<Draft> =
            begun.into_iter().chain(new.chunks(MOST_RUNS).map(|runs| draft(&fingerprint, runs))).collect();
        let appended = writer.append(&head, drafts)?;
        let (Some(last), None) = (appended.links().last(), &name) else {
            appended.publish()?;
            return Ok(head.name);
        };
        let reference = LogName::apart(&fingerprint, last.hash).archive_reference();
        appended.under(reference.clone()).publish()?;
        Ok(reference)
    })
}

fn draft(fingerprint: &str, runs: &[(RunId, ArchivedRun)]) -> Draft {
    let stamps = runs.iter().filter_map(|(run, held)| {
        let tree = held.stamps?;
        Some((format::archived_stamps_path(run), Edit::Tree(tree)))
    });
    let edits = stamps.collect();
    let runs: BTreeMap<RunId, ArchivedRun> = runs.iter().cloned().collect();
    Draft { about: Subject::Archive(fingerprint.to_owned()), event: Event::ArchiveAdded(ArchiveAdded { runs }), edits }
}

/// What can go wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its chain could not be read or written.
    #[error("the archive could not be read or written")]
    Chain(#[from] chain::Error),
    /// What it holds could not be read.
    #[error("what the archive holds could not be read")]
    Contents(#[from] archives::Fault),
    /// The refs could not be read.
    #[error(transparent)]
    Refs(#[from] refs::Error),
}

impl Lost for Error {
    fn is_lost(&self) -> bool {
        matches!(self, Self::Chain(error) if error.is_lost())
    }
}
