//! The repository log: one append-only chain per writer over all the runs it submitted and sealed.
//!
//! It is written after the run's own ref and can be rebuilt from it, so a crash in between loses nothing: the next `run` or
//! `doctor` appends what is missing.

use serde::{Deserialize, Serialize};

use crate::chain::{self, Draft, Head, Writer};
use crate::git::store::{Edit, Store};
use crate::git::{refs, store};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, LogSealed, LogSubmitted};
use crate::model::format;
use crate::model::name::RunId;

/// How often an append is tried again when another process of the same writer appended first.
const RACES: usize = 50;

/// What a log's tree holds about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The run.
    pub run: RunId,
    /// The leaf hash of the run's entry 0, while the run is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Digest>,
    /// The run's root, once sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
    /// The number of entries under the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// The leaf hash of the seal entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Digest>,
    /// The commit of the seal entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Oid>,
}

impl Record {
    /// Returns the record of a run that was submitted.
    pub fn submitted(run: RunId, first: Digest) -> Self {
        Self { run, first: Some(first), root: None, entries: None, seal: None, commit: None }
    }

    /// Returns the record of a run that was sealed.
    pub fn sealed(run: RunId, root: Digest, entries: u64, seal: Digest, commit: Oid) -> Self {
        Self { run, first: None, root: Some(root), entries: Some(entries), seal: Some(seal), commit: Some(commit) }
    }

    fn event(&self, log: String) -> Option<Event> {
        match self {
            Self { root: Some(root), entries: Some(entries), seal: Some(seal), commit: Some(commit), .. } => {
                Some(Event::LogSealed(LogSealed { log, root: *root, entries: *entries, seal: *seal, commit: *commit }))
            }
            Self { first: Some(first), .. } => Some(Event::LogSubmitted(LogSubmitted { log, first: *first })),
            _ => None,
        }
    }
}

/// Returns what a writer's log holds about a run.
pub fn find(store: &Store, fingerprint: &str, run: &RunId) -> Result<Option<Record>, Error> {
    let head = chain::tip(store, &format::log_ref(fingerprint))?;
    record_at(store, &head, run)
}

/// Returns the logs here, ours and fetched, that name a run.
pub fn witnesses(store: &Store, run: &RunId) -> Result<Vec<String>, Error> {
    let mut named = Vec::new();
    for (name, _) in refs::list(store, "refs/handoff/").map_err(Error::Refs)? {
        let is_log = name.starts_with("refs/handoff/logs/")
            || (name.starts_with("refs/handoff/remotes/") && name.contains("/logs/"));
        if is_log && record_at(store, &chain::tip(store, &name)?, run)?.is_some() {
            named.push(name);
        }
    }
    Ok(named)
}

/// Appends a record to the writer's log unless it stands there already.
pub fn ensure(writer: &Writer, record: &Record) -> Result<(), Error> {
    let fingerprint = writer.signer.fingerprint();
    let name = format::log_ref(&fingerprint);
    for _ in 0..RACES {
        let head = chain::tip(&writer.store, &name)?;
        if let Some(known) = record_at(&writer.store, &head, &record.run)?
            && (known == *record || known.root.is_some())
        {
            return Ok(());
        }
        let event = record.event(fingerprint.clone()).ok_or(Error::Record)?;
        let blob = writer.store.write_blob(&format::canonical(record))?;
        let edits = vec![(format::log_path(&record.run), Edit::Blob(blob))];
        let drafted = writer.append(&head, vec![Draft { run: record.run.clone(), event, edits }])?;
        match drafted.publish() {
            Err(chain::Error::LostRace(_)) => {}
            // The lock file of a process that was killed; the run would otherwise never be mended.
            Err(chain::Error::Ref(refs::Error::Locked(_))) => {
                refs::clear_stale_lock(&writer.store, &name).map_err(Error::StaleLock)?;
            }
            other => return other.map(drop).map_err(Error::Chain),
        }
    }
    Err(Error::Chain(chain::Error::LostRace(name)))
}

fn record_at(store: &Store, head: &Head, run: &RunId) -> Result<Option<Record>, Error> {
    let Some(tree) = head.tree else { return Ok(None) };
    let Some(blob) = store.blob_at(tree, &format::log_path(run))? else { return Ok(None) };
    serde_json::from_slice(&store.read_blob(blob)?).map(Some).map_err(|_| Error::Record)
}

/// What can go wrong with a repository log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log's chain could not be read or written.
    #[error("the repository log could not be read or written")]
    Chain(#[from] chain::Error),
    /// Its objects could not be read or written.
    #[error("the repository log could not be read or written")]
    Store(#[from] store::Error),
    /// The refs could not be listed.
    #[error("the refs could not be listed")]
    Refs(#[source] refs::Error),
    /// The lock file of a killed process could not be removed.
    #[error("the stale lock of the repository log could not be removed")]
    StaleLock(#[source] std::io::Error),
    /// What it holds about a run makes no sense.
    #[error("what the repository log holds about the run cannot be read")]
    Record,
}
