//! Leaving out of worktrees what the sparse checkout of the work tree leaves out.
//!
//! git itself says what that is. The files are marked in the index, as git marks them, so that nobody takes them for deleted.

use std::fs;

use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::{Flags, Mode};

use super::Error;
use crate::worker::host::Host;

/// What a worker's git is told of the sparse checkout.
pub(super) struct Sparse {
    /// The patterns, which are git's file of them.
    pub(super) patterns: Vec<u8>,
    /// Whether they name folders alone.
    pub(super) cone: bool,
}

/// Marks what is left out; returns how, or none where nothing is.
pub(super) fn apply(host: &Host, index: &mut gix::index::State) -> Result<Option<Sparse>, Error> {
    let repo = host.store.local();
    let config = repo.config_snapshot();
    let file = host.store.git_dir().join("info/sparse-checkout");
    if !host.sparse || config.boolean("core.sparseCheckout") != Some(true) || !file.is_file() {
        return Ok(None);
    }
    let cone = config.boolean("core.sparseCheckoutCone").unwrap_or(true);
    let paths: Vec<u8> =
        index.entries().iter().flat_map(|entry| entry.path(index).iter().copied().chain([0])).collect();
    let rules = host.store.git().args(["sparse-checkout", "check-rules", "-z"]).input(paths);
    let inside = rules.run().map_err(|error| Error::Sparse(Box::new(error)))?;
    let inside: std::collections::BTreeSet<&BStr> = inside.split(|byte| *byte == 0).map(ByteSlice::as_bstr).collect();
    let outside: Vec<bool> = index.entries().iter().map(|entry| !inside.contains(entry.path(index))).collect();
    for (entry, outside) in index.entries_mut().iter_mut().zip(outside) {
        if outside && entry.mode != Mode::COMMIT {
            entry.flags |= Flags::SKIP_WORKTREE | Flags::EXTENDED;
        }
    }
    let patterns = fs::read(&file).map_err(Error::at(&file))?;
    Ok(Some(Sparse { patterns, cone }))
}
