//! Conflicts that a person is to resolve: marked in the files and unmerged in the index, as git's own commands leave them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::merge::{self, Scratch};
use super::program;
use super::store::Store;
use super::work_tree::paths;
use crate::model::digest::Oid;

/// The ref of this work tree that holds what conflicts with `HEAD`, as `CHERRY_PICK_HEAD` does: the marks in files name it.
const THEIRS: &str = "HANDOFF_HEAD";

/// What could not be merged.
pub struct Unmerged {
    /// The tree that is to be in the work tree, with marks in the files.
    pub tree: Oid,
    /// The paths to resolve.
    pub paths: BTreeSet<PathBuf>,
    /// The entries of the index for them, as git lists and reads them.
    entries: Vec<u8>,
}

/// Merges a tree into that of `HEAD` over a third.
pub fn with_head(
    store: &Store,
    scratch: &Scratch,
    over: Oid,
    theirs: Oid,
) -> Result<Result<Oid, Unmerged>, merge::Error> {
    let over = scratch.as_commit(over, None)?;
    let theirs = scratch.as_commit(theirs, Some(over))?;
    store.git().args(["update-ref", THEIRS, &theirs.to_string()]).run()?;
    let call = scratch.git().args(["merge-tree", "--write-tree", "-z", "--no-messages"]);
    let mut said = Vec::new();
    let result = call.args([&format!("--merge-base={over}"), "HEAD", THEIRS]).stream(&mut |chunk| {
        said.extend_from_slice(chunk);
        Ok(())
    });
    let mut fields = said.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let tree = merge::oid(&String::from_utf8_lossy(fields.next().unwrap_or_default()));
    match result {
        Ok(()) => Ok(Ok(tree?)),
        Err(program::Error::Failed { code: Some(1), .. }) if !said.is_empty() => {
            let mut unmerged = Unmerged { tree: tree?, paths: BTreeSet::new(), entries: Vec::new() };
            for field in fields {
                let path = field.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default();
                unmerged.paths.extend(paths(path));
                unmerged.entries.extend_from_slice(field);
                unmerged.entries.push(0);
            }
            Ok(Err(unmerged))
        }
        Err(other) => Err(other.into()),
    }
}

impl Unmerged {
    /// Makes the index say that these paths are to be resolved.
    pub fn mark(&self, store: &Store) -> Result<(), program::Error> {
        let nothing = "0".repeat(self.tree.to_string().len());
        let mut told = Vec::new();
        for path in &self.paths {
            told.extend_from_slice(format!("0 {nothing}\t").as_bytes());
            told.extend_from_slice(path.as_os_str().as_encoded_bytes());
            told.push(0);
        }
        told.extend_from_slice(&self.entries);
        store.git().args(["update-index", "-z", "--index-info"]).input(told).run()?;
        Ok(())
    }
}

/// Returns the paths that are unmerged in the index.
pub fn unmerged(store: &Store) -> Result<BTreeSet<PathBuf>, program::Error> {
    let listed = store.git().args(["ls-files", "--unmerged", "-z"]).run()?;
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
    Ok(entries.flat_map(paths).collect())
}

/// Forgets what conflicted; it may not be there.
pub fn forget(store: &Store) -> Result<(), program::Error> {
    store.git().args(["update-ref", "-d", THEIRS]).run().map(drop)
}
