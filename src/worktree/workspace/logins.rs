//! Files of a login that a worker renews, and the record of an attempt's private copies.
//!
//! The worker has a hard link to the user's file, or a copy. An agent that replaces the file by a
//! rename has its own file then, whose bytes are written into the user's, unless that changed
//! meanwhile. This happens while the attempt runs, because other processes need the new login at
//! once, after it, and, if the driver was killed, when the next one cleans up.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent_folders::AGENT;
use super::{Error, Workspace};
use crate::git::no_locks::NoLocks;
use crate::model::digest::Digest;
use crate::sandbox::folder::Folder;
use crate::sandbox::open_folder;

/// The file in an attempt's folder, which no worker reaches, that describes its logins.
pub(super) const STATE: &str = "logins.json";

/// The most bytes of a login, and of the file above.
const MOST: u64 = 1 << 20;

/// All permissions of a file, with the right to run as another user.
const ALL_MODES: u32 = 0o7777;

/// How long to wait for another process that writes the same login.
const PATIENCE: Duration = Duration::from_secs(5);

/// The type of an entry that makes opencode run settings of a server.
const WELL_KNOWN: &str = "wellknown";

/// The private copies of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) folders: Vec<Made>,
    pub(super) logins: Vec<Login>,
}

/// A copied folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    /// Its place below the folder of private copies.
    pub(super) place: PathBuf,
    /// The names in it when it was made: settings and logins.
    pub(super) own: Vec<String>,
}

impl Made {
    /// Describes a folder that no worker has seen yet.
    pub(super) fn read(place: &Path, folder: &Path) -> io::Result<Self> {
        let mut own = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().into_string();
            own.push(name.map_err(|name| io::Error::other(format!("{} is not UTF-8", name.display())))?);
        }
        Ok(Self { place: place.to_owned(), own })
    }
}

/// One file of a login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Login {
    /// The worker's file, below the folder of private copies.
    at: PathBuf,
    /// The user's file, without links in its path.
    real: PathBuf,
    /// The digest of the bytes that both had last.
    was: Digest,
    /// True if new bytes go back only if they can run nothing.
    checked: bool,
    /// The permissions of the user's file.
    mode: u32,
}

impl State {
    /// Reads it from an attempt's folder.
    pub(super) fn read(attempt: &Folder) -> io::Result<Self> {
        serde_json::from_slice(&attempt.read(STATE, MOST)?).map_err(io::Error::other)
    }

    /// Writes it, in the place of an earlier one.
    pub(super) fn write(&self, dir: &Path) -> io::Result<()> {
        let bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        let new = dir.join(format!("{STATE}.new"));
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&bytes)?;
        fs::rename(new, dir.join(STATE))
    }
}

/// The result for one login.
enum Outcome {
    /// Nothing is to be done, or it has to wait.
    Same,
    /// The last common bytes changed.
    Now(Digest),
    /// The worker's bytes are not given back.
    Kept(&'static str),
}

impl Login {
    /// Describes the user's file.
    pub(super) fn read(at: PathBuf, real: PathBuf, checked: bool) -> io::Result<Self> {
        let mut file = File::open(&real)?;
        let mode = file.metadata()?.mode() & ALL_MODES;
        let was = Digest::compute(&read(&mut file)?);
        Ok(Self { at, real, was, checked, mode })
    }

    /// Copies the user's file.
    pub(super) fn copy(&self, to: &Path) -> io::Result<()> {
        let bytes = read(&mut File::open(&self.real)?)?;
        File::options().write(true).create_new(true).mode(0o600).open(to)?.write_all(&bytes)
    }

    /// Takes permissions from the user's file that it did not have: a worker can change those of a
    /// file that it shares.
    fn restore_mode(&self) {
        let Some((folder, name)) = self.real.parent().zip(self.real.file_name()) else { return };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened =
            open_folder(folder).and_then(|folder| Ok(rustix::fs::openat(&folder, name, flags, Mode::empty())?));
        let Ok(file) = opened.map(File::from) else { return };
        if let Ok(meta) = file.metadata()
            && meta.mode() & ALL_MODES & !self.mode != 0
        {
            // The next look tries again.
            let _ = file.set_permissions(Permissions::from_mode(meta.mode() & self.mode));
        }
    }

    /// Writes the worker's bytes into the user's file, if they are new and that did not change.
    fn give_back(&self, mut own: File, patience: Duration) -> io::Result<Outcome> {
        let (Some(folder), Some(name)) = (self.real.parent(), self.real.file_name()) else { return Ok(Outcome::Same) };
        let folder = open_folder(folder)?;
        let since = Instant::now();
        // No worker can open the folder and keep its lock.
        while let Err(error) = rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(NoLocks::explain(&self.real, error.into()));
            }
            if since.elapsed() >= patience {
                return if patience.is_zero() { Ok(Outcome::Same) } else { Err(error.into()) };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(real) = rustix::fs::openat(&folder, name, flags, Mode::empty()) else { return Ok(Outcome::Same) };
        let mut real = File::from(real);
        let (there, here) = (real.metadata()?, own.metadata()?);
        let is_same = (there.dev(), there.ino()) == (here.dev(), here.ino());
        if !there.is_file() || there.len() > MOST || here.len() > MOST {
            return Ok(if is_same { Outcome::Same } else { Outcome::Kept("it is too large") });
        }
        let old = read(&mut real)?;
        let is_changed = Digest::compute(&old) != self.was;
        if is_same {
            return Ok(if is_changed { Outcome::Now(Digest::compute(&old)) } else { Outcome::Same });
        }
        let new = read(&mut own)?;
        let now = Digest::compute(&new);
        match self.refusal(&old, &new) {
            _ if now == self.was || new == old => Ok(Outcome::Same),
            _ if is_changed => Ok(Outcome::Kept("yours changed meanwhile")),
            Some(why) => Ok(Outcome::Kept(why)),
            None => {
                // In place, so that others who have this file see it.
                real.write_all_at(&new, 0)?;
                real.set_len(new.len() as u64)?;
                real.sync_all()?;
                Ok(Outcome::Now(now))
            }
        }
    }

    /// Returns why new bytes are no login in the place of the old ones.
    fn refusal(&self, old: &[u8], new: &[u8]) -> Option<&'static str> {
        let (was, is) = (parse_object(old), parse_object(new));
        if new.is_empty() || (was.is_some() || self.checked) && is.is_none() {
            return Some("it is not a login");
        }
        let was = was.unwrap_or_default();
        let mut is_new = is.iter().flatten().filter(|(name, value)| was.get(*name) != Some(value));
        (self.checked && is_new.any(|(_, value)| value.get("type").and_then(Value::as_str) == Some(WELL_KNOWN)))
            .then_some("it names a server whose settings would be run")
    }
}

fn parse_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// Gives back the logins of an attempt that its worker renewed by replacing their files. `at_end`
/// is true after the attempt's processes ended; then it waits for other processes. Returns the
/// logins that are not given back, with the reasons.
pub(super) fn give_back(attempt: &Folder, dir: &Path, at_end: bool) -> Vec<(PathBuf, String)> {
    let Ok(mut state) = State::read(attempt) else { return Vec::new() };
    let Ok(agent) = attempt.folder(AGENT) else { return Vec::new() };
    let patience = if at_end { PATIENCE } else { Duration::ZERO };
    let (mut unrenewed, mut is_changed) = (Vec::new(), false);
    for login in &mut state.logins {
        login.restore_mode();
        // A link or a pipe is no login; a link of ours leads to the user's file anyway.
        let Some(own) = login.at.to_str().and_then(|at| agent.file(at).ok()) else { continue };
        match login.give_back(own, patience) {
            Ok(Outcome::Same) => {}
            Ok(Outcome::Now(now)) => (login.was, is_changed) = (now, true),
            Ok(Outcome::Kept(why)) => unrenewed.push((login.real.clone(), why.to_owned())),
            Err(error) => unrenewed.push((login.real.clone(), error.to_string())),
        }
    }
    if is_changed {
        // Without it, a later look finds that the user's file changed.
        let _ = state.write(dir);
    }
    unrenewed
}

/// Removes the files below a folder that are the user's own file of a login: a worker without
/// bubblewrap can link it there. The folder is kept, and is read and edited later.
pub(super) fn remove_links(attempt: &Folder, folder: &Path) -> io::Result<()> {
    let Ok(state) = State::read(attempt) else { return Ok(()) };
    let metas = state.logins.iter().filter_map(|login| fs::metadata(&login.real).ok());
    let logins: BTreeSet<(u64, u64)> = metas.map(|meta| (meta.dev(), meta.ino())).collect();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).into_iter().flatten() {
            let entry = entry?;
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                folders.push(entry.path());
            } else if logins.contains(&(meta.dev(), meta.ino())) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

impl Workspace {
    /// Removes the private copies and the links to logins from an attempt's folder that stays.
    pub fn forget_logins(&self) -> Result<(), Error> {
        remove_links(self.folder(), &self.tree()).map_err(Error::at(&self.dir))?;
        self.folder().remove(AGENT).map_err(Error::at(&self.dir))
    }

    /// Gives back renewed logins while the attempt runs, as far as that is possible at once.
    pub fn renew_logins(&self) {
        give_back(self.folder(), &self.dir, false);
    }
}

/// Reads a file of a login from its beginning.
fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
