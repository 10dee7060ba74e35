//! Finds the attempts that a dead driver left on disk.

use std::io;
use std::path::{Path, PathBuf};

use super::private::Private;
use super::{Error, Workspace, name_of, open_run, run_dir};
use super::{for_check, logins};
use crate::model::digest::Oid;
use crate::model::name::{ItemId, RunId};
use crate::process::disk;
use crate::process::survivors;
use crate::sandbox::folder::Folder;
use crate::worktree::host::Host;

/// The suffix of a folder whose work could not be saved.
pub const UNSAVED: &str = "-unsaved";

/// An attempt's folder without a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The item.
    pub item: ItemId,
    /// The attempt.
    pub attempt: u32,
    /// The attempt's folder.
    pub dir: PathBuf,
}

impl Leftover {
    /// Returns its size in bytes: its folder, and its worker's private files elsewhere (often in
    /// `/tmp`).
    pub fn bytes(&self, host: &Host) -> u64 {
        let private = Private::new(host, &self.dir);
        [self.dir.clone(), private.dir(), private.caches()].iter().map(|folder| disk::size(folder, 0)).sum()
    }
}

impl Workspace {
    /// Renames the attempt's folder, whose work is not saved elsewhere, so that a person finds it
    /// and no driver removes it. Returns its new path. Private copies of agents' folders go.
    pub fn set_aside(self) -> Result<PathBuf, Error> {
        self.private.remove()?;
        self.forget_logins()?;
        let moved_to = self.dir.with_extension(format!("{}{UNSAVED}", self.attempt));
        std::fs::rename(&self.dir, &moved_to).map_err(Error::at(&self.dir))?;
        Ok(moved_to)
    }

    /// Takes the worktree that an earlier attempt of the item left for a person, as that of a new
    /// attempt.
    pub fn take_left(
        host: &Host,
        (run, item, attempt): (&RunId, &ItemId, u32),
        base: Oid,
        earlier: u32,
    ) -> Result<Self, Error> {
        let place = Self::place(host, run, item, attempt);
        let left = run_dir(host, run).join(format!("{}{UNSAVED}", name_of(item, earlier)));
        std::fs::rename(&left, &place).map_err(Error::at(&left))?;
        let leftover = Leftover { item: item.clone(), attempt, dir: place.clone() };
        let mut workspace = Self::reopen(host, run, leftover, base)?
            .ok_or_else(|| Error::io(&place, io::ErrorKind::NotFound.into()))?;
        workspace.reusable = false;
        workspace.private.make()?;
        Ok(workspace)
    }

    /// Kills the processes of a run's attempts and removes the run's folder with their work and
    /// private files. The caller holds the run's lock.
    pub fn remove_all(host: &Host, run: &RunId) -> Result<(), Error> {
        for left in [Self::leftovers(host, run)?, Self::unsaved(host, run)?].concat() {
            survivors::end(&left.dir);
            // The login is the person's, whatever becomes of the work.
            if let Ok(folder) = Folder::open(&left.dir) {
                logins::give_back(&folder, &left.dir, true);
                for_check::give_back_aside(&folder, &left.dir);
            }
            Private::new(host, &left.dir).remove()?;
        }
        match Folder::open(&host.settings.root) {
            Ok(root) => root.remove(&run.encoded()).map_err(Error::at(&run_dir(host, run))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(&host.settings.root, error)),
        }
    }

    /// Lists the attempts of a run on disk: those of a dead driver, if the caller holds the run's
    /// lock.
    ///
    /// Call [`crate::process::survivors::end`] for one before it is salvaged or removed.
    pub fn leftovers(host: &Host, run: &RunId) -> Result<Vec<Leftover>, Error> {
        list(host, run, |name| name.rsplit_once('.'))
    }

    /// Lists the attempts of a run whose work could not be saved and was set aside for a person.
    pub fn unsaved(host: &Host, run: &RunId) -> Result<Vec<Leftover>, Error> {
        list(host, run, |name| name.strip_suffix(UNSAVED)?.rsplit_once('.'))
    }

    /// Returns the path of an attempt's folder, existing or not.
    pub fn place(host: &Host, run: &RunId, item: &ItemId, attempt: u32) -> PathBuf {
        run_dir(host, run).join(name_of(item, attempt))
    }

    /// Returns the run and item of an attempt's folder, or `None` if the name is no attempt's.
    pub fn named_by(dir: &Path) -> Option<(RunId, ItemId)> {
        let (item, _) = parse_name(dir)?;
        Some((parse_run(dir)?, item))
    }

    /// Returns true if the path could be an attempt's folder.
    pub fn is_place(dir: &Path) -> bool {
        dir.is_absolute() && parse_run(dir).is_some() && parse_name(dir).is_some()
    }
}

/// Parses the name of an attempt's folder.
fn parse_name(dir: &Path) -> Option<(ItemId, u32)> {
    let (item, attempt) = dir.file_name()?.to_str()?.rsplit_once('.')?;
    parse(item, attempt)
}

/// Parses the name of the run's folder around an attempt's.
fn parse_run(dir: &Path) -> Option<RunId> {
    RunId::decode(dir.parent()?.file_name()?.to_str()?)
}

/// Parses the two parts of a folder's name.
fn parse(item: &str, attempt: &str) -> Option<(ItemId, u32)> {
    Some((ItemId::decode(item)?, attempt.parse().ok()?))
}

/// Lists the folders of a run whose names `split` separates into item and attempt.
fn list(host: &Host, run: &RunId, split: impl Fn(&str) -> Option<(&str, &str)>) -> Result<Vec<Leftover>, Error> {
    let Some((dir, folder)) = open_run(host, run)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in folder.entries().map_err(Error::at(&dir))? {
        let (name, _) = entry.map_err(Error::at(&dir))?;
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        if let Some((item, attempt)) = split(name).and_then(|(item, attempt)| parse(item, attempt)) {
            found.push(Leftover { item, attempt, dir: dir.join(name) });
        }
    }
    found.sort_by(|a, b| (&a.item, a.attempt).cmp(&(&b.item, b.attempt)));
    Ok(found)
}
