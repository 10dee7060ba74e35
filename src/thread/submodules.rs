//! Checks out the submodules of a restored working tree at their saved commits.

use std::fs;
use std::path::{Path, PathBuf};

use crate::git::program::Git;
use crate::model::digest::Oid;
use crate::model::hints;

use super::path_of;
use super::worktree::records;

/// A submodule that is not at the saved commit: the commit is missing or git refused.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Behind {
    /// Its path from the top of the working tree.
    pub path: String,
    /// The saved commit.
    pub commit: Oid,
}

impl Behind {
    /// Formats the submodule and the command that checks it out.
    pub fn in_words(&self) -> String {
        let Self { path, commit } = self;
        format!("the submodule {path} is not at the saved commit: {}", hints::check_out_submodule(path, commit))
    }
}

/// Checks out the saved commits of submodules as far as they are here; returns the others. Fetches
/// nothing and keeps local changes.
pub(super) fn check_out(root: &Path, links: Vec<(PathBuf, Oid)>) -> Vec<Behind> {
    let behind = links.into_iter().filter(|(path, commit)| !is_checked_out(&root.join(path), *commit));
    behind.map(|(path, commit)| Behind { path: path.to_string_lossy().into_owned(), commit }).collect()
}

fn is_checked_out(dir: &Path, commit: Oid) -> bool {
    let git_dir = dir.join(".git");
    if fs::symlink_metadata(&git_dir).is_err() {
        return false;
    }
    let checkout = ["checkout", "--quiet", "--detach", "--no-overwrite-ignore"];
    let git = Git::new(&git_dir).work_tree(dir).env("GIT_NO_LAZY_FETCH", "1");
    git.args(checkout).arg(commit.to_string()).run().is_ok()
}

/// Returns the submodules among some paths with their commits, from `git ls-files --stage`.
pub(super) fn links(listed: &[u8], among: &[Vec<u8>]) -> Vec<(PathBuf, Oid)> {
    let links = records(listed).filter_map(|record| {
        let (about, path) = record.split_at(record.iter().position(|byte| *byte == b'\t')?);
        let (path, about) = (&path[1..], std::str::from_utf8(about).ok()?);
        let commit = about.strip_prefix("160000 ")?.split(' ').next()?.parse().ok()?;
        among.iter().any(|other| other == path).then(|| (path_of(path), commit))
    });
    links.collect()
}
