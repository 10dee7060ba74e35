//! Whose a place is: the folder of its attempt, in the file that is locked for it.
//!
//! A lock ends with its driver, and with that the supervisor and what it confines. Where both were killed and nothing confines the worker,
//! that goes on, and only this tells whom to look for.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::worker::survivors::{self, Left};
use crate::worker::workspace::Workspace;

/// The longest path that is looked at, in bytes.
const LONGEST: u64 = 16 * 1024;

/// Says whose it is.
pub(super) fn write(mut file: &File, attempt_dir: &Path) -> io::Result<()> {
    clear(file)?;
    file.write_all(attempt_dir.as_os_str().as_bytes())
}

/// Says that it is nobody's.
pub(super) fn clear(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()
}

/// Ends what is left of the attempt that had it and did not give it back; returns whether nothing of it is left.
pub(super) fn is_over(mut file: &File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(LONGEST).read_to_end(&mut bytes)?;
    if let Some(dir) = attempt(&PathBuf::from(OsString::from_vec(bytes))) {
        survivors::end(Left::Stranded, &dir);
        if survivors::are_left(&dir) {
            return Ok(false);
        }
    }
    clear(file)?;
    Ok(true)
}

/// Returns the folder of an attempt as its processes know it; none of a path that no attempt can have, as a full disk would leave one.
fn attempt(written: &Path) -> Option<PathBuf> {
    let (run, name) = (written.parent()?, written.file_name()?);
    // A folder that is gone is in their environment still.
    let root = run.parent()?;
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let dir = root.join(run.file_name()?).join(name);
    Workspace::is_place(&dir).then_some(dir)
}

/// Returns the items whose attempts hold the places of a thing now, each as `RUN/ITEM`, in order.
///
/// A file that names an attempt and is not locked was left by a driver that died, and holds nothing.
pub(super) fn current(thing: &Path) -> Vec<String> {
    let places = fs::read_dir(thing.join("places")).into_iter().flatten().flatten();
    let mut holders: Vec<String> = places.filter_map(|place| holder(&place.path())).collect();
    holders.sort();
    holders
}

fn holder(place: &Path) -> Option<String> {
    let file = File::open(place).ok()?;
    let mut bytes = Vec::new();
    (&file).take(LONGEST).read_to_end(&mut bytes).ok()?;
    let (run, item) = Workspace::named_by(&PathBuf::from(OsString::from_vec(bytes)))?;
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| format!("{run}/{item}"))
}
