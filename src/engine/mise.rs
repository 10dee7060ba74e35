//! Passes on the trust in a repository's `mise.toml` to the worktrees of its items.
//!
//! mise reads a `mise.toml` only in folders that its user trusted, and each worktree is a new
//! folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::Environment;
use crate::sandbox::folders;

/// The variable that lists the trusted folders, separated by `:`.
pub(super) const VARIABLE: &str = "MISE_TRUSTED_CONFIG_PATHS";

/// Sets the variable for workers if the user trusts one of the work trees; otherwise removes it.
pub(super) fn set_trust(environment: &Environment, work_trees: &[PathBuf], ambient: &mut BTreeMap<String, OsString>) {
    let listed = ambient.remove(VARIABLE).unwrap_or_default();
    let mut trusted: Vec<PathBuf> = folders(Some(&listed));
    trusted.extend(linked(environment));
    if work_trees.iter().any(|tree| trusted.iter().any(|it| tree.starts_with(it) || it.parent() == Some(tree))) {
        ambient.insert(VARIABLE.to_owned(), listed);
    }
}

/// Adds a worktree to the value of the variable.
pub(super) fn add(value: &mut OsString, tree: &Path) {
    if !value.is_empty() {
        value.push(":");
    }
    value.push(tree);
}

/// Returns the files and folders that the user trusted. mise keeps a link to each.
fn linked(environment: &Environment) -> Vec<PathBuf> {
    let state = absolute_folder(environment, "MISE_STATE_DIR")
        .or_else(|| Some(absolute_folder(environment, "XDG_STATE_HOME")?.join("mise")))
        .or_else(|| Some(absolute_folder(environment, "HOME")?.join(".local/state/mise")));
    let links = state.and_then(|state| fs::read_dir(state.join("trusted-configs")).ok());
    links.into_iter().flatten().flatten().filter_map(|link| fs::read_link(link.path()).ok()).collect()
}

fn absolute_folder(environment: &Environment, name: &str) -> Option<PathBuf> {
    environment.variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
