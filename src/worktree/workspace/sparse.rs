//! Applies the work tree's sparse checkout to worktrees.
//!
//! git lists the excluded files. They are marked in the index, as git does, so that they do not
//! look deleted.

use std::fs;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Flags, Mode};

use super::Error;
use crate::worktree::host::Host;

/// The sparse checkout for a worker's git.
pub(super) struct Sparse {
    /// The content of git's file of patterns.
    pub(super) patterns: Vec<u8>,
    /// True in cone mode, where they name only folders.
    pub(super) cone: bool,
}

/// Marks the excluded files. Returns the sparse checkout, or `None` if nothing is excluded.
pub(super) fn apply(host: &Host, index: &mut gix::index::State) -> Result<Option<Sparse>, Error> {
    let repo = host.store.local();
    let config = repo.config_snapshot();
    let file = host.store.git_dir().join("info/sparse-checkout");
    if !host.settings.sparse || config.boolean("core.sparseCheckout") != Some(true) || !file.is_file() {
        return Ok(None);
    }
    let cone = config.boolean("core.sparseCheckoutCone").unwrap_or(true);
    let paths: Vec<u8> =
        index.entries().iter().flat_map(|entry| entry.path(index).iter().copied().chain([0])).collect();
    let rules = host.store.git().args(["sparse-checkout", "check-rules", "-z"]).input(paths);
    let inside = rules.run().map_err(|error| Error::Sparse(Box::new(error)))?;
    let inside: std::collections::BTreeSet<&BStr> = inside.split(|byte| *byte == 0).map(ByteSlice::as_bstr).collect();
    let outside: Vec<bool> = index.entries().iter().map(|entry| !inside.contains(entry.path(index))).collect();
    for (entry, is_outside) in index.entries_mut().iter_mut().zip(outside) {
        if is_outside && entry.mode != Mode::COMMIT {
            entry.flags |= Flags::SKIP_WORKTREE | Flags::EXTENDED;
        }
    }
    let patterns = fs::read(&file).map_err(Error::at(&file))?;
    Ok(Some(Sparse { patterns, cone }))
}
