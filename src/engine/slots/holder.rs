//! Records in a slot's lock file which attempt holds it, by the attempt's folder.
//!
//! A lock ends with its driver, and so do the supervisor and what it confines. If both were killed
//! and nothing confines the worker, its processes go on. This record is how they are found.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::process::survivors;
use crate::worktree::workspace::Workspace;

/// The most bytes of a path that are read.
const MAX_PATH: u64 = 16 * 1024;

pub(super) fn write(mut file: &File, attempt_dir: &Path) -> io::Result<()> {
    clear(file)?;
    file.write_all(attempt_dir.as_os_str().as_bytes())
}

pub(super) fn clear(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()
}

/// Ends what is left of the attempt that the file names, and returns true if nothing of it is left.
pub(super) fn end_leftovers(mut file: &File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.rewind()?;
    if let Some(dir) = attempt_dir(&read(file)?) {
        survivors::end(&dir);
        if survivors::are_left(&dir) {
            return Ok(false);
        }
    }
    clear(file)?;
    Ok(true)
}

fn read(file: &File) -> io::Result<PathBuf> {
    let mut bytes = Vec::new();
    file.take(MAX_PATH).read_to_end(&mut bytes)?;
    Ok(OsString::from_vec(bytes).into())
}

/// Returns the folder of an attempt as its processes know it, or `None` if no attempt can have this
/// path, such as one that a full disk cut off.
fn attempt_dir(written: &Path) -> Option<PathBuf> {
    let (run, name) = (written.parent()?, written.file_name()?);
    // Processes still have a removed folder in their environment.
    let root = run.parent()?;
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let dir = root.join(run.file_name()?).join(name);
    Workspace::is_place(&dir).then_some(dir)
}

/// Returns the items that hold the places of a slot now, each as `RUN/ITEM`, in order.
///
/// A file that names an attempt but is not locked was left by a dead driver.
pub(super) fn current(slot_dir: &Path) -> Vec<String> {
    let places = fs::read_dir(slot_dir.join("places")).into_iter().flatten().flatten();
    let mut holders: Vec<String> = places.filter_map(|place| holder(&place.path())).collect();
    holders.sort();
    holders
}

fn holder(place: &Path) -> Option<String> {
    let file = File::open(place).ok()?;
    let (run, item) = Workspace::named_by(&read(&file).ok()?)?;
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| format!("{run}/{item}"))
}
