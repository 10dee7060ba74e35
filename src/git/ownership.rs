//! Checks the owner of a discovered repository: opens another user's only if git would.
//!
//! A repository's settings, filters and hooks name programs that would run as the caller. git is
//! asked, so that `safe.directory`, `SUDO_UID`, `safe.bareRepository` and an explicit `GIT_DIR`
//! keep their meaning. It is not asked if the user owns everything and there is a work tree.

use std::path::Path;

use gix::sec::Trust;

use super::folder::absolute;
use super::program::{self, Git};
use super::store::Error;

/// The setting that git names when it refuses a repository because of its owner.
const WAY_OUT: &str = "safe.directory";

/// Fails if git would refuse the repository found from `dir` because of its owner.
pub(super) fn check(repo: &gix::Repository, dir: &Path) -> Result<(), Error> {
    // git may also refuse an implicit bare repository: `safe.bareRepository`.
    if is_ours(repo) && !repo.is_bare() {
        return Ok(());
    }
    match Git::searching().in_dir(dir).args(["rev-parse", "--absolute-git-dir"]).line() {
        // git may open another repository, whose owner does not matter here.
        Ok(found) if absolute(Path::new(&found)) == absolute(repo.git_dir()) => Ok(()),
        Ok(_) => Err(foreign_error(repo)),
        Err(program::Error::Failed { stderr, .. }) if stderr.contains(WAY_OUT) => Err(foreign_error(repo)),
        Err(other) => Err(Error::Program(Box::new(other))),
    }
}

fn foreign_error(repo: &gix::Repository) -> Error {
    Error::Foreign(absolute(repo.workdir().unwrap_or(repo.git_dir())))
}

/// Returns true if the user owns everything that git checks, false if that cannot be determined.
fn is_ours(repo: &gix::Repository) -> bool {
    let link = repo.workdir().map(|dir| dir.join(".git"));
    let found = [Some(repo.git_dir()), Some(repo.common_dir()), repo.workdir(), link.as_deref()];
    // The directory of discovery can differ from the work tree.
    repo.git_dir_trust() == Trust::Full && found.into_iter().flatten().all(is_own)
}

/// Returns true if the user owns a path, or the symbolic link itself, or if it does not exist.
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(meta) => meta.uid() == rustix::process::geteuid().as_raw(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
