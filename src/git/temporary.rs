//! Private temporary folders, removed when dropped and when a signal ends the program.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{Access, access};
use tempfile::{NamedTempFile, TempDir};

/// The existing folders.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A function to call before the first folder is created.
static BEFORE: OnceLock<fn()> = OnceLock::new();
static FIRST: Once = Once::new();

/// How often to check that a folder is gone, with pauses: a running git may create it again.
const LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(25);

/// The number of consecutive checks in which all folders must be gone.
const ENOUGH: u32 = 2;

/// Returns true if a path is a folder in which files can be created.
pub fn is_writable(folder: &Path) -> bool {
    folder.is_dir() && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// A folder in the system's directory for temporary files.
pub struct Temporary {
    folder: TempDir,
}

impl Temporary {
    /// Creates an empty folder.
    pub fn new() -> io::Result<Self> {
        FIRST.call_once(|| BEFORE.get().iter().for_each(|before| before()));
        // Create it under the lock, so that every folder is registered.
        let mut folders = registered();
        let folder = tempfile::Builder::new().prefix("git-handoff-").tempdir()?;
        folders.insert(folder.path().to_owned());
        Ok(Self { folder })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        registered().remove(self.folder.path());
    }
}

/// Registers a function to call before the first folder is created, for a program that installs
/// signal handlers only when there is something to remove.
pub fn before_the_first(what: fn()) {
    // The first caller wins.
    let _ = BEFORE.set(what);
}

/// Removes all folders in a program that is ending. Other threads that create or drop one wait for
/// the end.
pub fn remove_all() {
    let folders = registered();
    let mut gone = 0;
    for _ in 0..LOOKS {
        let left = folders.iter().filter(|folder| folder.exists());
        // A folder that is being filled now can be removed soon.
        gone = if left.map(fs::remove_dir_all).count() == 0 { gone + 1 } else { 0 };
        if gone == ENOUGH || folders.is_empty() {
            break;
        }
        thread::sleep(PAUSE);
    }
    std::mem::forget(folders);
}

fn registered() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file for people that becomes visible once it is whole. An existing one is replaced at once; a
/// device or a pipe is written to.
pub struct NewFile<'p> {
    target: NewTarget,
    path: &'p Path,
}

enum NewTarget {
    Temporary(NamedTempFile),
    Special(fs::File),
}

impl<'p> NewFile<'p> {
    /// Begins the file at a path, in the same folder.
    pub fn next_to(path: &'p Path) -> io::Result<Self> {
        let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if is_special {
            let file = fs::OpenOptions::new().write(true).open(path)?;
            return Ok(Self { target: NewTarget::Special(file), path });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Its error does not name the temporary file.
        fs::metadata(folder)?;
        Ok(Self { target: NewTarget::Temporary(NamedTempFile::new_in(folder)?), path })
    }

    /// Returns the file for writing.
    pub fn as_write(&mut self) -> &mut dyn Write {
        match &mut self.target {
            NewTarget::Temporary(file) => file,
            NewTarget::Special(file) => file,
        }
    }

    /// Gives it the default mode of a new file, and its name.
    pub fn place(self) -> io::Result<()> {
        let NewTarget::Temporary(mut file) = self.target else { return Ok(()) };
        file.flush()?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        file.persist(self.path).map_err(|error| error.error)?;
        Ok(())
    }
}
