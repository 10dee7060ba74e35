//! Finds folders of a repository that cannot be written.

use std::io;
use std::path::PathBuf;

use rustix::fs::{Access, access};

use super::store::Store;

/// Returns the first folder of the repository that this process cannot write, with the reason.
pub fn find_unwritable(store: &Store) -> Option<(PathBuf, io::Error)> {
    let common = store.common_dir();
    let folders = [store.git_dir(), store.objects_dir(), common.join("refs"), common];
    folders.into_iter().find_map(|folder| {
        let error = access(&folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
        Some((folder, error.into()))
    })
}
