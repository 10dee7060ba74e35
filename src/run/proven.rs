//! Opens a run only where it verifies, and keeps how far it did, so that the next writer verifies what came since.
//!
//! The mark lies with the signing key, in `handoff` of the git directory, where nobody but us writes: neither a commit nor a remote
//! can put one there. It says nothing to `verify`, which looks at everything, nor to anybody who takes bytes out of a run.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::marks;
use crate::git::store::Store;
use crate::ledger::chain::{Head, Writer};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::{FilePath, RunId};
use crate::model::role::{Refused, Role};
use crate::repository::{self, Repository, Trust};
use crate::verify::{Begun, Continuable, Mark, Proven, Refusal, continuable_on};

use super::{Error, OpenRun};

/// A file that is larger than this is none of ours.
const LARGEST: u64 = 64 << 10;

/// A mark as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Who verified. Another version may look at more, and believes none but its own.
    tool: String,
    key: String,
    commit: Oid,
}

impl OpenRun {
    /// Opens a run of this repository for recording, if it verifies as far as it goes and our key may append to it.
    ///
    /// With [`OpenRun::of`] the only way to one: what was not verified cannot be appended to. A sealed one of ours is opened as well: nothing can be
    /// recorded on it, and what a crash after the seal left out can be put right.
    pub fn open(writer: &Writer, run: &RunId) -> Result<Self, Denied> {
        Self::open_begun(writer, run, Begun::ByKnown(None))
    }

    /// Opens a run like [`OpenRun::open`], which others than our key may have begun.
    pub fn open_begun(writer: &Writer, run: &RunId, begun: Begun<'_>) -> Result<Self, Denied> {
        let key = writer.signer.fingerprint();
        let mark = read(&writer.store, run);
        match continuable_on(&writer.store, run, &format::run_ref(run), (&key, begun), mark.as_ref()) {
            Ok(proven) => {
                let now = Mark { commit: proven.commit, key };
                if mark.as_ref() != Some(&now) {
                    // Without one, all is verified again the next time.
                    let _ = keep(&writer.store, run, now);
                }
                Ok(Self::of(writer, proven)?)
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

    /// Opens a run as it was verified, without keeping how far it was.
    pub fn of(writer: &Writer, proven: Proven<Continuable>) -> Result<Self, Error> {
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
        let (first, frontier) = (proven.first, proven.frontier);
        Ok(Self::new(writer.clone(), proven.run, (first, artifacts), (head, frontier, proven.state)))
    }
}

impl Repository {
    /// Opens a run of this repository for recording, if our key began it, or one that our signers know and that is not revoked.
    pub fn opened(&self, run: &RunId) -> Result<OpenRun, Denied> {
        let trust = self.options(&Trust::default(), &mut |_| ()).ok();
        OpenRun::open_begun(&self.writer()?, run, Begun::ByKnown(trust.as_ref()))
    }

    /// Opens a run of this repository for recording, whoever began it: nothing of it may be executed.
    pub fn opened_by_anyone(&self, run: &RunId) -> Result<OpenRun, Denied> {
        OpenRun::open_begun(&self.writer()?, run, Begun::ByAnyone)
    }
}

fn path(store: &Store, run: &RunId) -> PathBuf {
    marks::path(store, marks::VERIFIED, &run.encoded())
}

/// Returns the mark of a run; none where there is none of ours.
fn read(store: &Store, run: &RunId) -> Option<Mark> {
    let kept: Kept = serde_json::from_slice(&marks::read(&path(store, run), LARGEST).ok()?).ok()?;
    (kept.tool == format::TOOL).then_some(Mark { commit: kept.commit, key: kept.key })
}

fn keep(store: &Store, run: &RunId, mark: Mark) -> std::io::Result<()> {
    let kept = Kept { tool: format::TOOL.to_owned(), key: mark.key, commit: mark.commit };
    marks::put(store, marks::VERIFIED, &run.encoded(), &format::canonical(&kept))
}

impl Denied {
    /// Names the roles of which one is missing, where the key has none at all in the run.
    pub(crate) fn lacking(self, roles: &'static [Role]) -> Self {
        match self {
            Self::Refused(Refusal::NotAWriter { run, key }) => {
                Self::Run(Error::Role { run, key, why: Refused::Role(roles) })
            }
            other => other,
        }
    }
}

/// Why a run was not opened.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Denied {
    #[error(transparent)]
    Run(#[from] Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Repository(#[from] repository::Error),
}
