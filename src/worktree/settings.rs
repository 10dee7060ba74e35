//! The settings of a repository's worktrees, as plain data.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::host::Host;

/// The settings that decide where a worktree lies and what belongs to its products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
#[expect(missing_docs, reason = "the fields are those of `Host`")]
pub struct WorktreeSettings {
    pub root: PathBuf,
    pub private: PathBuf,
    pub inputs: String,
    pub outputs: String,
    pub max_product: u64,
    pub max_salvage: u64,
    pub copy: Vec<String>,
    pub link: Vec<String>,
    pub lfs: bool,
    pub sparse: bool,
    pub give_refs: bool,
    pub submodules: bool,
    pub capture_submodules: bool,
    /// In seconds.
    pub capture_time: u64,
    pub user: Option<(String, String)>,
}

impl Host {
    /// Returns the settings of its worktrees.
    pub fn settings(&self) -> WorktreeSettings {
        WorktreeSettings {
            root: self.root.clone(),
            private: self.private.clone(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            max_product: self.max_product,
            max_salvage: self.max_salvage,
            copy: self.copy.clone(),
            link: self.link.clone(),
            lfs: self.lfs,
            sparse: self.sparse,
            give_refs: self.give_refs,
            submodules: self.submodules,
            capture_submodules: self.capture_submodules,
            capture_time: self.capture_time.as_secs(),
            user: self.user.clone(),
        }
    }

    /// Replaces the settings of its worktrees.
    #[must_use]
    pub fn configured(&self, settings: WorktreeSettings) -> Self {
        let mut host = self.clone();
        (host.root, host.private) = (settings.root, settings.private);
        (host.inputs, host.outputs) = (settings.inputs, settings.outputs);
        (host.max_product, host.max_salvage) = (settings.max_product, settings.max_salvage);
        (host.copy, host.link) = (settings.copy, settings.link);
        (host.lfs, host.sparse, host.give_refs) = (settings.lfs, settings.sparse, settings.give_refs);
        (host.submodules, host.capture_submodules) = (settings.submodules, settings.capture_submodules);
        host.capture_time = Duration::from_secs(settings.capture_time);
        host.user = settings.user;
        host
    }
}
