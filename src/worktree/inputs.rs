//! Writes consumed products into a worktree.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::git::store::{self, Store};
use crate::model::digest::{Digest, Oid};
use crate::model::name::FilePath;
use crate::worktree::workspace::Workspace;

/// Writes each blob to `inputs/<key>`, read-only, and checks its hash.
///
/// Call this before the worker starts. A blob that is missing or has another hash leaves nothing
/// under its key, and later keys are not written.
pub fn stage(workspace: &Workspace, store: &Store, inputs: &BTreeMap<FilePath, (Oid, Digest)>) -> Result<(), Error> {
    for (key, (oid, expected)) in inputs {
        let path = workspace.inputs().join(key.as_str());
        if let Err(error) = write(store, &path, *oid, *expected) {
            // Only files from `write` are here.
            let _ = fs::remove_file(&path);
            return Err(Error { key: key.clone(), digest: *expected, problem: error });
        }
    }
    Ok(())
}

fn write(store: &Store, path: &Path, oid: Oid, expected: Digest) -> Result<(), Problem> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Problem::Io(path.to_owned(), e))?;
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o444)
        .open(path)
        .map_err(|e| Problem::Io(path.to_owned(), e))?;
    let (actual, _) = store.copy_blob(oid, &mut file).map_err(Problem::Read)?;
    if actual != expected {
        return Err(Problem::Mismatch(actual));
    }
    Ok(())
}

/// Why an input was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the input `{key}` ({digest})")]
pub struct Error {
    /// The input key.
    pub key: FilePath,
    /// The expected hash.
    pub digest: Digest,
    /// The problem.
    #[source]
    pub problem: Problem,
}

errors! {
    /// A problem with one input.
    #[derive(Debug, thiserror::Error)] pub enum Problem;
    Mismatch(Digest): "its bytes hash to {0}";
    Io(PathBuf, #[source] io::Error): "{} could not be written" [.0.display()];
    #[from] Read(store::Error);
}
