//! The settings of a repository's worktrees, as plain data.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The default limit of a product's size: common hosts refuse larger blobs.
const MAX_PRODUCT: u64 = 100 << 20;

/// The default limit of salvaged work of one attempt.
const MAX_SALVAGE: u64 = 256 << 20;

/// The default time limit for capturing an attempt, in seconds.
const CAPTURE_TIME: u64 = 5 * 60;

/// The settings that decide where a worktree lies and what belongs to its products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
pub struct WorktreeSettings {
    /// The folder of the attempts, created when needed.
    pub root: PathBuf,
    /// The folder of each worker's private files, with a path as short as possible. Created when
    /// needed.
    pub private: PathBuf,
    /// The slash-separated folder of consumed products in a worktree.
    pub inputs: String,
    /// The slash-separated folder of outputs in a worktree.
    pub outputs: String,
    /// The largest product, and the largest transcript, in bytes.
    pub max_product: u64,
    /// The most bytes of salvaged work of one attempt.
    pub max_salvage: u64,
    /// Paths copied from the work tree into every worktree, with patterns as in `.gitignore`.
    pub copy: Vec<String>,
    /// Paths that every worktree has as links.
    pub link: Vec<String>,
    /// True to run the filter `lfs`.
    pub lfs: bool,
    /// True to apply the work tree's sparse checkout to worktrees.
    pub sparse: bool,
    /// True to show the repository's refs and remotes in worktrees.
    pub give_refs: bool,
    /// True to check out submodules from local repositories.
    pub submodules: bool,
    /// True to capture changes in submodules; otherwise such a change fails the item.
    pub capture_submodules: bool,
    /// The time limit for capturing or salvaging an attempt, in seconds.
    pub capture_time: u64,
    /// The name and e-mail address for a worker's own commits, or `None` for git's global
    /// configuration.
    pub user: Option<(String, String)>,
}

impl WorktreeSettings {
    /// Returns the default names and limits, for attempts below a folder.
    pub fn new(root: PathBuf) -> Self {
        Self {
            private: root.join("@own"),
            root,
            inputs: "inputs".to_owned(),
            outputs: "outputs".to_owned(),
            max_product: MAX_PRODUCT,
            max_salvage: MAX_SALVAGE,
            copy: Vec::new(),
            link: Vec::new(),
            lfs: true,
            sparse: true,
            give_refs: true,
            submodules: false,
            capture_submodules: false,
            capture_time: CAPTURE_TIME,
            user: None,
        }
    }
}
