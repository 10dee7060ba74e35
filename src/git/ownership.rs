//! Whose repository it is that was found: one of somebody else's is opened only where git would open it.
//!
//! Its settings, filters and hooks name programs, and those would run as whoever calls us. git is asked itself, so that
//! `safe.directory`, `SUDO_UID`, `safe.bareRepository` and a `GIT_DIR` that was named mean what they mean to it; but not where all is
//! one's own, and there is a work tree.

use std::path::Path;

use gix::sec::Trust;

use super::folder::absolute;
use super::program::{self, Git};
use super::store::Error;

/// What git names whenever it does not open a repository for the sake of its owner.
const WAY_OUT: &str = "safe.directory";

/// Fails where git would not open the repository that was found from `dir`, because of whose it is.
pub(super) fn check(repo: &gix::Repository, dir: &Path) -> Result<(), Error> {
    // Of a bare one that nobody named git may want nothing to do either: `safe.bareRepository`.
    if is_ours(repo) && !repo.is_bare() {
        return Ok(());
    }
    let foreign = || Error::Foreign(absolute(repo.workdir().unwrap_or(repo.git_dir())));
    match Git::searching().in_dir(dir).args(["rev-parse", "--absolute-git-dir"]).line() {
        // What git finds and opens may be another one, of which it is no matter whose it is.
        Ok(found) if absolute(Path::new(&found)) == absolute(repo.git_dir()) => Ok(()),
        Ok(_) => Err(foreign()),
        Err(program::Error::Failed { said, .. }) if said.contains(WAY_OUT) => Err(foreign()),
        Err(other) => Err(Error::Program(Box::new(other))),
    }
}

/// Returns whether everything that git looks at is owned by who runs this; not, if it cannot be looked at.
fn is_ours(repo: &gix::Repository) -> bool {
    let link = repo.workdir().map(|dir| dir.join(".git"));
    let found = [Some(repo.git_dir()), Some(repo.common_dir()), repo.workdir(), link.as_deref()];
    // The place where it was found can be another than its work tree.
    repo.git_dir_trust() == Trust::Full && found.into_iter().flatten().all(is_own)
}

/// Returns whether a path, or the link that it is, is owned by who runs this; one that is not there is nobody else's.
#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match std::fs::symlink_metadata(path) {
        Ok(meta) => meta.uid() == rustix::process::geteuid().as_raw(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    true
}
