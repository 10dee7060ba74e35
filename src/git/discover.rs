//! Finds the repository around a directory.

use std::path::Path;

use gix::ThreadSafeRepository;
use gix::discover::upwards;

use super::ownership;
use super::store::{Error, bounded};

/// Opens the repository that contains `dir`, as git's own environment variables and discovery rules say, if it is not somebody else's.
pub(super) fn discover(dir: &Path) -> Result<ThreadSafeRepository, Error> {
    // A ceiling that lies elsewhere is of no concern here, as it is of none to git.
    let options = upwards::Options { match_ceiling_dir_or_error: false, ..Default::default() };
    let trust = gix::sec::trust::Mapping::<gix::open::Options>::default();
    let trust = gix::sec::trust::Mapping { full: bounded(trust.full), reduced: bounded(trust.reduced) };
    let found = ThreadSafeRepository::discover_with_environment_overrides_opts(dir, options, trust);
    let repo = found.map_err(|error| not_opened(dir, error))?;
    ownership::check(&repo.to_thread_local(), dir)?;
    Ok(repo)
}

/// Says that there is no repository, or that the one that is there cannot be opened.
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
