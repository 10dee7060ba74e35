//! Executes the attempt of a spec that lies in a file, without a driver.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;

use crate::git::store::Store;
use crate::model::any_error::AnyError;
use crate::model::digest::Digest;
use crate::model::name::ItemId;
use crate::repository::{Environment, Repository};
use crate::worktree::workspace;

use super::attempt;
pub use super::attempt::{AttemptResult, AttemptSpec, LeftWorktree, SpecError, StoredCheck, StoredTranscript, Verdict};
use super::machine::{Machine, NoCache};
use super::operations::Drivable;
use super::prepare;

/// The `schema` of the result of an attempt.
pub const RESULT_SCHEMA: &str = "git-handoff.attempt-result/1";

/// The most bytes of a spec.
const MAX_SPEC: u64 = 64 << 20;

/// The permissions of other users, of which a spec must have none: it holds the environment.
const OTHERS: u32 = 0o077;

/// The result of an attempt, bound to its spec.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Executed {
    #[cfg_attr(feature = "schemas", schemars(extend("const" = "git-handoff.attempt-result/1")))]
    schema: &'static str,
    /// The digest of the spec's canonical form.
    pub spec: Digest,
    /// The result.
    pub result: AttemptResult,
}

/// Reads a spec from a file that only its owner can read.
pub fn read(path: &Path) -> Result<AttemptSpec, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(Error::Kind(path.to_owned()));
    }
    let mode = meta.permissions().mode() & 0o777;
    if mode & OTHERS != 0 || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::Open { path: path.to_owned(), mode });
    }
    let mut bytes = Vec::new();
    file.take(MAX_SPEC + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SPEC {
        return Err(Error::TooLarge(path.to_owned()));
    }
    Ok(AttemptSpec::parse(&bytes)?)
}

/// Writes a spec into a new file that only its owner can read.
pub fn write(spec: &AttemptSpec, path: &Path) -> Result<(), Error> {
    let bytes = spec.document()?;
    let file = File::options().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(&bytes));
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Executes a spec in the repository that it names, until the attempt ends or is cancelled.
///
/// The worktree stays, because salvage needs it until the end of the attempt is recorded. The
/// caller holds the run: no driver may drive it meanwhile.
pub async fn execute(
    spec: AttemptSpec,
    environment: Environment,
    cancel: watch::Receiver<bool>,
) -> Result<Executed, Error> {
    let digest = spec.digest()?;
    let is_pinned = environment.clock.is_pinned();
    let place = spec.repository.clone();
    let repository = Repository::open(Environment { directory: place.clone(), ..environment })
        .map_err(|source| Error::NoRepository { place: place.clone(), source })?;
    if place_of(&repository.store) != place {
        return Err(Error::Elsewhere { place, found: place_of(&repository.store) });
    }
    let mut handles = Machine::new(&repository, false)?.handles();
    handles.host = Arc::new(handles.host.configured(&spec.worktrees));
    handles.host.prepare(spec.base)?;
    let mut result = attempt::run(&handles, spec, cancel).await?.result;
    if is_pinned {
        result.forget_times();
    }
    Ok(Executed { schema: RESULT_SCHEMA, spec: digest, result })
}

/// Returns the path by which a spec names a repository: the top of its work tree, or the git
/// directory of a bare one.
pub(super) fn place_of(store: &Store) -> PathBuf {
    store.work_dir().unwrap_or_else(|| store.git_dir())
}

impl Drivable<'_> {
    /// Prepares the spec of the next attempt of an item whose needs are met. Nothing is recorded.
    pub fn spec(&self, item: &ItemId) -> Result<AttemptSpec, Error> {
        let at = self.open.state.graph.position(item).ok_or_else(|| Error::NoItem(item.clone()))?;
        let prepared = prepare::prepare(&self.open, &self.machine, at);
        Ok(prepared.map_err(|why| Error::NotReady { item: item.clone(), why: why.reason() })?.spec)
    }
}

errors! {
    /// Failures to execute a spec.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Read { path: PathBuf, source: io::Error }: "cannot read the spec {}" [path.display()];
    Write { path: PathBuf, source: io::Error }: "cannot write the spec {}" [path.display()];
    Kind(PathBuf): "the spec {} is not a file" [.0.display()];
    Open { path: PathBuf, mode: u32 }:
        "the spec {} holds an environment, but its mode is {mode:03o} or another user owns it: chmod 600"
        [path.display()];
    TooLarge(PathBuf): "the spec {} has more than {MAX_SPEC} bytes" [.0.display()];
    NoRepository { place: PathBuf, source: AnyError }: "cannot open the repository {} of the spec" [place.display()];
    Elsewhere { place: PathBuf, found: PathBuf }:
        "the spec names the repository {}, but that path belongs to {}" [place.display(), found.display()];
    NoItem(ItemId): "the run has no item {:?}" [.0.as_str()];
    NotReady { item: ItemId, why: String }: "the item {:?} cannot be dispatched: {why}" [item.as_str()];
    #[from] Spec(SpecError), NoCache(NoCache), Workspace(workspace::Error);
}

impl Error {
    /// Returns true if the spec itself is wrong, wherever it is executed.
    pub fn is_of_spec(&self) -> bool {
        match self {
            Self::Read { .. } | Self::Kind(_) | Self::Open { .. } | Self::TooLarge(_) => true,
            Self::Spec(error) => error.is_of_spec(),
            _ => false,
        }
    }
}
