//! Folders for what nobody else is to see, gone when they are dropped, and when a signal ends the program.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// The folders that there are.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What is done before the first of them is made.
static BEFORE: OnceLock<fn()> = OnceLock::new();
static FIRST: Once = Once::new();

/// How often it is looked whether a folder is gone, and how long is waited in between: a git that still runs may make it anew.
const LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(25);

/// In how many looks one after the other none of them is there.
const ENOUGH: u32 = 2;

/// A folder where the system has its temporary files.
pub struct Temporary {
    folder: TempDir,
}

impl Temporary {
    /// Makes an empty one.
    pub fn new() -> io::Result<Self> {
        FIRST.call_once(|| BEFORE.get().iter().for_each(|before| before()));
        // None is made that is not known.
        let mut held = held();
        let folder = tempfile::Builder::new().prefix("git-handoff-").tempdir()?;
        held.insert(folder.path().to_owned());
        Ok(Self { folder })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        held().remove(self.folder.path());
    }
}

/// Has something done before the first of them is made: for a program that hears signals, and not before it has something to tidy up.
pub fn before_the_first(what: fn()) {
    // Whoever asked first has seen to it.
    let _ = BEFORE.set(what);
}

/// Removes all of them, in a program that ends now: whoever makes another, or drops one, waits for the end.
pub fn remove_all() {
    let held = held();
    let mut gone = 0;
    for _ in 0..LOOKS {
        let left = held.iter().filter(|folder| folder.exists());
        // What cannot be removed now, because something is put there meanwhile, can be soon.
        gone = if left.map(fs::remove_dir_all).count() == 0 { gone + 1 } else { 0 };
        if gone == ENOUGH || held.is_empty() {
            break;
        }
        thread::sleep(PAUSE);
    }
    std::mem::forget(held);
}

fn held() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
