//! Opens the repository that contains a directory.

use std::path::Path;

use gix::ThreadSafeRepository;
use gix::discover::upwards;

use super::ownership;
use super::store::{Error, bounded};

/// Opens the repository that contains `dir` by git's discovery rules and environment variables.
/// Refuses one of another owner, as git does.
pub(super) fn discover(dir: &Path) -> Result<ThreadSafeRepository, Error> {
    // Like git, ignore a ceiling directory that does not contain `dir`.
    let options = upwards::Options { match_ceiling_dir_or_error: false, ..Default::default() };
    let trust = gix::sec::trust::Mapping::<gix::open::Options>::default();
    let trust = gix::sec::trust::Mapping { full: bounded(trust.full), reduced: bounded(trust.reduced) };
    let found = ThreadSafeRepository::discover_with_environment_overrides_opts(dir, options, trust);
    let repo = found.map_err(|error| not_opened(dir, error))?;
    ownership::check(&repo.to_thread_local(), dir)?;
    Ok(repo)
}

/// Returns the error for a missing repository or for one that cannot be opened.
fn not_opened(dir: &Path, error: gix::Error) -> Error {
    match error.downcast_any_ref() {
        Some(
            upwards::Error::NoGitRepository { .. }
            | upwards::Error::NoGitRepositoryWithinCeiling { .. }
            | upwards::Error::NoGitRepositoryWithinFs { .. },
        ) => Error::Nowhere(dir.to_owned()),
        _ => Error::Open(dir.to_owned(), Box::new(error)),
    }
}
