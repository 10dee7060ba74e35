//! The attempts that a dead driver left on the disk.

use std::io;
use std::path::{Path, PathBuf};

use super::private::Private;
use super::{Error, Workspace, name_of, open_run, run_dir};
use crate::model::name::{ItemId, RunId};
use crate::worker::disk;
use crate::worker::folder::Folder;
use crate::worker::host::Host;
use crate::worker::survivors;

/// What the name of a folder ends with whose work could not be saved.
pub const UNSAVED: &str = "-unsaved";

/// The folder of an attempt whose driver is gone.
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
    /// Returns how many bytes it takes: its folder, and the private files of its worker, which lie elsewhere (often in `/tmp`).
    pub fn bytes(&self, host: &Host) -> u64 {
        let private = Private::of(host, &self.dir);
        [self.dir.clone(), private.dir(), private.caches()].iter().map(|folder| disk::size(folder, 0)).sum()
    }
}

impl Workspace {
    /// Ends what still runs in the attempts of a run, and removes its folder with the work in it, and the private files of its
    /// workers. The caller holds the run.
    pub fn remove_all(host: &Host, run: &RunId) -> Result<(), Error> {
        for left in [Self::leftovers(host, run)?, Self::unsaved(host, run)?].concat() {
            survivors::end(&left.dir);
            Private::of(host, &left.dir).remove()?;
        }
        match Folder::open(&host.root) {
            Ok(root) => root.remove(&run.encoded()).map_err(Error::at(&run_dir(host, run))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(&host.root, error)),
        }
    }

    /// Lists the attempts of a run that are on disk: those of a dead driver, if the caller holds the run's lock.
    ///
    /// Before one is salvaged or removed, [`crate::worker::survivors::end`] must have ended what still runs in it.
    pub fn leftovers(host: &Host, run: &RunId) -> Result<Vec<Leftover>, Error> {
        list(host, run, |name| name.rsplit_once('.'))
    }

    /// Lists the attempts of a run whose work could not be saved, and which were put aside for a person to look at.
    pub fn unsaved(host: &Host, run: &RunId) -> Result<Vec<Leftover>, Error> {
        list(host, run, |name| name.strip_suffix(UNSAVED)?.rsplit_once('.'))
    }

    /// Returns where the folder of an attempt is, or will be.
    pub fn place(host: &Host, run: &RunId, item: &ItemId, attempt: u32) -> PathBuf {
        run_dir(host, run).join(name_of(item, attempt))
    }

    /// Returns the run and the item whose attempt the folder would be, or `None` if no attempt can have it.
    pub fn named_by(dir: &Path) -> Option<(RunId, ItemId)> {
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let (item, _) = parse(name(dir)?.rsplit_once('.')?)?;
        Some((RunId::decode(&name(dir.parent()?)?)?, item))
    }

    /// Returns whether the folder of an attempt can be there.
    pub fn is_place(dir: &Path) -> bool {
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let is_run = dir.parent().and_then(name).is_some_and(|run| RunId::decode(&run).is_some());
        let attempt = name(dir).and_then(|name| parse(name.rsplit_once('.')?));
        dir.is_absolute() && is_run && attempt.is_some()
    }
}

/// Returns what the two parts of a folder's name say.
fn parse((item, attempt): (&str, &str)) -> Option<(ItemId, u32)> {
    Some((ItemId::decode(item)?, attempt.parse().ok()?))
}

/// Lists the folders of a run whose names `split` takes apart into an item and an attempt.
fn list(host: &Host, run: &RunId, split: impl Fn(&str) -> Option<(&str, &str)>) -> Result<Vec<Leftover>, Error> {
    let Some((dir, folder)) = open_run(host, run)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in folder.entries().map_err(Error::at(&dir))? {
        let (name, _) = entry.map_err(Error::at(&dir))?;
        let Ok(name) = std::str::from_utf8(&name) else { continue };
        if let Some((item, attempt)) = split(name).and_then(parse) {
            found.push(Leftover { item, attempt, dir: dir.join(name) });
        }
    }
    found.sort_by(|a, b| (&a.item, a.attempt).cmp(&(&b.item, b.attempt)));
    Ok(found)
}
