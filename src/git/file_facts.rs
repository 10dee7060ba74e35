//! Facts about a path that callers ask for without caring why one is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Returns the path with symbolic links resolved, or as it is if that fails.
pub(crate) fn canonical_or_same(path: PathBuf) -> PathBuf {
    fs::canonicalize(&path).unwrap_or(path)
}

/// Returns true for a file, or a link to one, with a permission to execute.
pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
