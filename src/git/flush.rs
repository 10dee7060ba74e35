//! Flushes the names of files to the disk. A power cut can undo a rename or a removal until the
//! folder is flushed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Flushes the names in a folder. If the folder was removed, as by the deletion of its last ref,
/// flushes the nearest one above it, which lost a name.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    for folder in path.ancestors() {
        match File::open(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened?.sync_all(),
        }
    }
    Ok(())
}

/// Flushes a file, if it exists, and its name.
pub(super) fn file(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_data()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    path.parent().map_or(Ok(()), folder)
}

/// Creates a folder with those above it. Returns the folders that got an entry by that.
pub(super) fn make_folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = path.ancestors().take_while(|folder| !folder.exists());
    let changed = missing.filter_map(Path::parent).map(Path::to_owned).collect();
    fs::create_dir_all(path)?;
    Ok(changed)
}
