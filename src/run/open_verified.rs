//! Opens runs only if they verify, and remembers how far they did, so that the next writer verifies
//! only newer entries.
//!
//! The mark lies with the signing key in `handoff` in the git directory, so neither a commit nor a
//! remote can plant one. `verify` and code that takes bytes out of a run ignore it.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::private_files;
use crate::git::store::Store;
use crate::ledger::chain::{Head, Writer};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::{FilePath, RunId};
use crate::model::role::{Refused, Role};
use crate::repository::{self, Repository, Trust};
use crate::verify::{Appender, Begun, Continuable, Mark, Refusal, Verified, continuable_on};

use super::open::Loaded;
use super::{Error, OpenRun, sharing};

/// The most bytes of a valid mark.
const LARGEST: u64 = 64 << 10;

/// The file format of a mark.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The version that verified. Other versions may check more, so they ignore the mark.
    tool: String,
    key: String,
    commit: Oid,
}

impl OpenRun {
    /// Opens a run of this repository for recording, if it verifies and our key can append to it.
    ///
    /// This and [`OpenRun::from_verified`] are the only ways to open a run. A sealed run is opened
    /// too, so that its log entry can be added after a crash; nothing else can be recorded.
    pub fn open(writer: &Writer, run: &RunId) -> Result<Self, Denied> {
        Self::open_begun(writer, run, Begun::ByKnown(None))
    }

    /// Opens a run like [`OpenRun::open`], with other rules for who can have begun it.
    pub fn open_begun(writer: &Writer, run: &RunId, begun: Begun<'_>) -> Result<Self, Denied> {
        let key = writer.signer.fingerprint();
        let mark = read(&writer.store, run);
        let appender = Appender { key: &key, begun, mark: mark.as_ref() };
        match continuable_on(&writer.store, run, &format::run_ref(run), appender) {
            Ok(proven) => {
                let now = Mark { commit: proven.commit, key };
                if mark.as_ref() != Some(&now) {
                    // If this fails, the next writer verifies everything again.
                    let _ = keep(&writer.store, run, now);
                }
                Ok(Self::from_verified(writer, proven)?)
            }
            Err(refusal) => {
                let opened = Self::unverified(writer.clone(), run)?;
                match refusal {
                    Refusal::Sealed(_) => {
                        let _ = fs::remove_file(path(&writer.store, run));
                        Ok(opened)
                    }
                    refusal => Err(refusal.into()),
                }
            }
        }
    }

    /// Opens a verified run, without leaving a mark.
    pub fn from_verified(writer: &Writer, proven: Verified<Continuable>) -> Result<Self, Error> {
        let proven = proven.into_inner();
        let entries = proven.entries();
        let artifact = |path: &FilePath| {
            let oid = writer.store.blob_at(proven.first_tree, &format::artifact_path(path))?;
            Ok((path.clone(), oid.ok_or_else(|| Error::Plan(proven.run.clone()))?))
        };
        let artifacts = proven.state.submitted.artifacts.keys().map(artifact).collect::<Result<_, Error>>()?;
        let head = Head {
            name: proven.reference,
            commit: Some(proven.commit),
            tree: Some(proven.tree),
            last: Some(proven.last),
            at: Some(proven.at),
            entries,
        };
        let (run, first, frontier, state) = (proven.run, proven.first, proven.frontier, proven.state);
        Ok(Self::new(writer.clone(), Loaded { run, first, artifacts, head, frontier, state }))
    }
}

impl Repository {
    /// Opens a run for recording, if our key began it, or a known signer whose key is not revoked.
    pub fn opened(&self, run: &RunId) -> Result<OpenRun, Denied> {
        self.follow_sharing(self.opened_here(run)?)
    }

    /// Opens a run like [`Repository::opened`], by the entries that are here. A shared run is not
    /// followed to its remote.
    pub fn opened_here(&self, run: &RunId) -> Result<OpenRun, Denied> {
        let trust = self.options(&Trust::default(), &mut |_| ()).ok();
        OpenRun::open_begun(&self.writer()?, run, Begun::ByKnown(trust.as_ref()))
    }

    /// Opens a run for recording, no matter which key began it. Nothing of it may be executed.
    pub fn opened_by_anyone(&self, run: &RunId) -> Result<OpenRun, Denied> {
        self.follow_sharing(OpenRun::open_begun(&self.writer()?, run, Begun::ByAnyone)?)
    }
}

fn path(store: &Store, run: &RunId) -> PathBuf {
    private_files::path(store, private_files::VERIFIED, &run.encoded())
}

/// Returns the mark of a run, or `None` if this version left none.
fn read(store: &Store, run: &RunId) -> Option<Mark> {
    let kept: Kept = serde_json::from_slice(&private_files::read(&path(store, run), LARGEST).ok()?).ok()?;
    (kept.tool == format::TOOL).then_some(Mark { commit: kept.commit, key: kept.key })
}

fn keep(store: &Store, run: &RunId, mark: Mark) -> std::io::Result<()> {
    let kept = Kept { tool: format::TOOL.to_owned(), key: mark.key, commit: mark.commit };
    private_files::put(store, private_files::VERIFIED, &run.encoded(), &format::canonical(&kept))
}

impl Denied {
    /// Names the roles that would do, if the key has none at all in the run.
    pub(crate) fn lacking(self, roles: &'static [Role]) -> Self {
        match self {
            Self::Refused(Refusal::NotAWriter { run, key }) => {
                Self::Run(Error::Role { run, key, why: Refused::Role(roles) })
            }
            other => other,
        }
    }
}

/// Failures to open a run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Denied {
    #[error(transparent)]
    Run(#[from] Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the run {:?} is shared, and nothing here says through which remote", .0.as_str())]
    Shared(RunId),
    #[error("cannot use the remote through which the run is shared")]
    Remote(#[source] Box<sharing::Error>),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
