//! Opens the repository that contains a directory.

use std::path::Path;

use gix::ThreadSafeRepository;
use gix::discover::upwards;

use super::folder::absolute;
use super::ownership;
use super::program::{self, EXPLICIT_ONLY, Git};
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
    let local = repo.to_thread_local();
    refuse_in_work_tree(local.git_dir(), dir)?;
    ownership::check(&local, dir)?;
    Ok(repo)
}

/// Fails if the repository is a folder of another one's work tree and was not named explicitly: a
/// worker may have made it, as files that have the shape of a bare repository.
fn refuse_in_work_tree(git_dir: &Path, dir: &Path) -> Result<(), Error> {
    let git_dir = absolute(git_dir);
    // No work tree contains such a folder.
    if git_dir.components().any(|part| part.as_os_str() == ".git") {
        return Ok(());
    }
    match absolute_git_dir(Git::searching().in_dir(dir)) {
        Err(program::Error::Failed { stderr, .. }) if stderr.contains("safe.bareRepository") => {}
        // It is named, by a variable or a file; or `ownership` says why git does not open it.
        _ => return Ok(()),
    }
    let above = git_dir.ancestors().skip(1);
    let mut tops =
        above.filter(|folder| folder.join(".git").exists() && absolute_git_dir(Git::found_from(folder)).is_ok());
    tops.next().map_or(Ok(()), |top| Err(Error::InWorkTree(git_dir.clone(), top.to_owned())))
}

fn absolute_git_dir(git: Git) -> Result<String, program::Error> {
    git.config(EXPLICIT_ONLY).args(["rev-parse", "--absolute-git-dir"]).line()
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
