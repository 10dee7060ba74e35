//! Private copies of agents' folders for one attempt: `agent/` in the attempt's folder.
//!
//! Settings are copied, and the worker's changes go nowhere. A login is a hard link to the user's
//! file, so that what an agent renews in place is the user's at once (`logins`). Everything else is
//! data of sessions: it begins empty, and is kept for the next attempt of the same item.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::agent_copy::Copier;
use super::cache::make_own;
use super::logins::{Login, Made, State, give_back, remove_links};
use super::scratch::own_place;
use super::{Error, Workspace};
use crate::sandbox::folder::{Folder, is_no_folder};
use crate::sandbox::{Confinement, PrivateCopy};
use crate::worktree::host::Host;

/// The folder of private copies in an attempt's folder.
pub(super) const AGENT: &str = "agent";

/// The folder in a run's folder that keeps data of sessions, by item.
const SESSIONS: &str = "@sessions";

/// The private copies of an attempt.
#[derive(Debug, Default)]
pub struct AgentFolders {
    /// Remarks for the transcript.
    pub remarks: Vec<String>,
    /// The folder with the copies.
    pub folder: PathBuf,
    /// The user's files of a login that the worker reaches by their paths, because no hard link is
    /// possible.
    pub shared: Vec<PathBuf>,
    /// The variables that name the copies in a real home directory.
    pub variables: Vec<(String, PathBuf)>,
}

impl Workspace {
    /// Makes the private copies, with `links` from them to places that settings give. `carry` is
    /// true if this attempt continues the sessions of the one before it.
    pub fn make_agent_folders(&self, by: &Confinement, links: &[(PathBuf, PathBuf)], carry: bool) -> Result<(), Error> {
        let copies = by.private_copies();
        let mut made = AgentFolders { folder: self.dir.join(AGENT), ..AgentFolders::default() };
        let sessions = self.sessions(carry)?;
        if copies.is_empty() {
            return Ok(());
        }
        make_own(&made.folder).map_err(Error::at(&made.folder))?;
        let (mut state, mut copier) = (State::default(), Copier::default());
        // Before any data of sessions, whose links a worker chose.
        for (below, target) in links {
            let link = parent_made(made.folder.join(below))?;
            symlink(target, &link).map_err(Error::at(&link))?;
        }
        let is_file = |copy: &&PrivateCopy| copy.from.is_file() || copy.parts.is_none() && !copy.from.is_dir();
        let (files, folders): (Vec<_>, Vec<_>) = copies.iter().partition(is_file);
        for copy in files.into_iter().chain(folders) {
            let place = place_of(copy, copies, by.has_own_home());
            let to = made.folder.join(&place);
            if is_file(&copy) {
                let to = if by.has_own_home() { own_place(&self.home(), &copy.below)? } else { Some(parent_made(to)?) };
                if let Some(to) = to {
                    copier.copy(&copy.from, &to, &|path: &Path| by.may_copy(copy, path)).map_err(Error::at(&to))?;
                }
                continue;
            }
            make_own(&to).map_err(Error::at(&to))?;
            copier.copy_folder(copy, &to, &|path: &Path| by.may_copy(copy, path)).map_err(Error::at(&to))?;
            make_logins(copy, &place, &|path: &Path| by.may_copy(copy, path), &mut made, &mut state)?;
            state.folders.push(Made::read(&place, &to).map_err(Error::at(&to))?);
            if let Some(Err(error)) = sessions.as_ref().map(|sessions| carry_over(sessions, copy, &place, &to)) {
                // The agent works without them, too.
                made.remarks.push(format!("the data of sessions in {} is lost: {error}", copy.below.display()));
            }
            self.show(copy, &to, by.has_own_home(), &mut made)?;
        }
        self.forget_sessions_of_item()?;
        made.remarks.extend(copier.remarks());
        state.write(&self.dir).map_err(Error::at(&self.dir))?;
        self.agent.get_or_init(|| made);
        Ok(())
    }

    /// Returns the private copies, or `None` if the attempt has none.
    pub fn agent_folders(&self) -> Option<&AgentFolders> {
        self.agent.get()
    }

    /// Makes a copy visible: at its usual place in a private home directory, or by its variable.
    fn show(&self, copy: &PrivateCopy, to: &Path, has_own_home: bool, made: &mut AgentFolders) -> Result<(), Error> {
        if !has_own_home {
            if let Some((name, below)) = &copy.moved
                && below.as_os_str().is_empty()
            {
                made.variables.push((name.clone(), to.to_owned()));
            }
            return Ok(());
        }
        match own_place(&self.home(), &copy.below)? {
            Some(link) => symlink(to, &link).map_err(Error::at(&link)),
            None => Err(Error::io(&self.home().join(&copy.below), io::ErrorKind::AlreadyExists.into())),
        }
    }

    /// Ends the private copies: gives renewed logins back, and keeps the data of sessions for the
    /// next attempt if there is to be one. Returns notes for the operator.
    ///
    /// The attempt's processes have ended.
    pub fn end_agent_folders(&self, keep_sessions: bool) -> Vec<String> {
        let unrenewed = give_back(&self.folder, &self.dir, true).into_iter();
        let notes = unrenewed
            .map(|(login, why)| format!("{}: the login in {} is not renewed: {why}", self.item, login.display()));
        let notes = notes.collect();
        let is_left = keep_sessions && self.folder.has(AGENT);
        if is_left && drop_own(&self.folder).and_then(|()| remove_links(&self.folder, &self.dir.join(AGENT))).is_ok() {
            // Without sessions the next attempt works too.
            let _ = self.keep_sessions();
        }
        notes
    }

    fn keep_sessions(&self) -> io::Result<()> {
        if !self.run_folder.has(SESSIONS) {
            self.run_folder.make(SESSIONS)?;
        }
        let sessions = self.run_folder.own_folder(SESSIONS)?;
        let item = self.item.encoded();
        sessions.remove(&item)?;
        Ok(rustix::fs::renameat(&*self.folder, AGENT, &sessions, &*item)?)
    }

    /// Opens the data of sessions that the attempt before this one left; removes it for a first
    /// attempt.
    fn sessions(&self, carry: bool) -> Result<Option<Folder>, Error> {
        if !carry {
            if self.attempt == 1 {
                self.forget_sessions_of_item()?;
            }
            return Ok(None);
        }
        let opened = self.run_folder.own_folder(SESSIONS).and_then(|all| all.own_folder(&self.item.encoded()));
        match opened {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if is_no_folder(&error) => Ok(None),
            Err(error) => Err(Error::io(&self.dir, error)),
        }
    }

    fn forget_sessions_of_item(&self) -> Result<(), Error> {
        match self.run_folder.own_folder(SESSIONS) {
            Ok(sessions) => sessions.remove(&self.item.encoded()).map_err(Error::at(&self.dir)),
            Err(error) if is_no_folder(&error) => Ok(()),
            Err(error) => Err(Error::io(&self.dir, error)),
        }
    }
}

/// Shares the files of a login, or copies those that must be checked.
fn make_logins(
    copy: &PrivateCopy,
    place: &Path,
    may: &dyn Fn(&Path) -> bool,
    made: &mut AgentFolders,
    state: &mut State,
) -> Result<(), Error> {
    let linked = copy.logins.iter().map(|file| (file, false));
    for (file, checked) in linked.chain(copy.checked.iter().map(|file| (file, true))) {
        let Ok(real) = fs::canonicalize(copy.from.join(file)) else { continue };
        if !real.is_file() || !may(&real) {
            continue;
        }
        let at = place.join(file);
        let to = parent_made(made.folder.join(&at))?;
        let login = Login::read(at, real.clone(), checked).map_err(Error::at(&real))?;
        if checked {
            login.copy(&to).map_err(Error::at(&to))?;
        } else if fs::hard_link(&real, &to).is_err() {
            symlink(&real, &to).map_err(Error::at(&to))?;
            made.shared.push(real);
        }
        state.logins.push(login);
    }
    Ok(())
}

/// Removes the settings and the logins from the copies of an attempt: what is left is data of
/// sessions. Fails if the copies are not as they were made.
fn drop_own(attempt: &Folder) -> io::Result<()> {
    let agent = attempt.folder(AGENT)?;
    for Made { place, own } in State::read(attempt)?.folders {
        let folder = agent.folder(place.to_str().ok_or(io::ErrorKind::InvalidData)?)?;
        own.iter().try_for_each(|name| folder.remove(name))?;
    }
    Ok(())
}

/// Removes the data of sessions of a run's items, when none of them gets another attempt.
pub(super) fn forget_sessions(host: &Host, run: &super::RunId) -> Result<(), Error> {
    match super::open_run(host, run)? {
        Some((dir, folder)) => folder.remove(SESSIONS).map_err(Error::at(&dir)),
        None => Ok(()),
    }
}

/// Returns the place of a copy below the folder of private copies.
fn place_of(copy: &PrivateCopy, copies: &[PrivateCopy], has_own_home: bool) -> PathBuf {
    let Some((name, below)) = copy.moved.as_ref().filter(|(_, below)| !has_own_home && !below.as_os_str().is_empty())
    else {
        return copy.below.clone();
    };
    copies
        .iter()
        .find(|other| {
            other.moved.as_ref().is_some_and(|(other, moved_by)| other == name && moved_by.as_os_str().is_empty())
        })
        .map_or_else(|| copy.below.clone(), |around| around.below.join(below))
}

/// Moves data of sessions into a copy: what is neither a setting nor a login.
fn carry_over(sessions: &Folder, copy: &PrivateCopy, place: &Path, to: &Path) -> io::Result<()> {
    let Some(place) = place.to_str() else { return Ok(()) };
    let Ok(from) = sessions.folder(place) else { return Ok(()) };
    let into = Folder::open(to)?;
    let parts = copy.parts.iter().flatten().chain(&copy.logins).chain(&copy.checked);
    let own: BTreeSet<&OsStr> = parts.filter_map(|part| part.iter().next()).collect();
    for entry in from.entries()? {
        let (name, _) = entry?;
        let name = OsStr::from_bytes(&name);
        if !own.contains(name) && rustix::fs::statat(&into, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_err() {
            rustix::fs::renameat(&from, name, &into, name)?;
        }
    }
    Ok(())
}

fn parent_made(path: PathBuf) -> Result<PathBuf, Error> {
    if let Some(folder) = path.parent() {
        make_own(folder).map_err(Error::at(folder))?;
    }
    Ok(path)
}
