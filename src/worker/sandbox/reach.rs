//! What workers reach on this machine: what is the same for all of them is looked up once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::caches::Caches;
use super::home::at_home;
use super::map::{Access, Led, Map};
use super::named::is_led_away;
use super::places::{SELF_INSTALLED, SETTINGS, SHARED_MEMORY, SYSTEM, SYSTEM_FILES, SYSTEM_SECRETS};
use super::programs::Programs;
use super::secrets::{MOST_LOOKED, OTHERS, bit_for_others, is_secret, kept_by_mode, peoples_homes, secrets_of, umask};
use super::tools::TOOLS;
use super::{Refused, Word, outside, servers};
use crate::model::confinement::{Asked, Home};

/// What has to be known of a machine and a repository to say what workers reach there.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home directory of who drives the run.
    pub home: Option<PathBuf>,
    /// The folders that programs are looked for in; absolute.
    pub path: Vec<PathBuf>,
    /// The folders of git's own files that belong to the repository.
    pub git_dirs: Vec<PathBuf>,
    /// The folders of objects, the repository's own and those that it borrows from.
    pub objects: Vec<PathBuf>,
    /// The files and folders of git's in repositories on this machine that are remotes of ours, as `git fetch` reads them.
    pub remotes: Vec<PathBuf>,
    /// The work trees that belong to the repository.
    pub work_trees: Vec<PathBuf>,
    /// Programs that are started outside of the sandbox by their own paths.
    pub programs: Vec<PathBuf>,
    /// Files and folders that git or this program reads or runs outside of the sandbox; absolute, and perhaps not there.
    pub outside: Vec<PathBuf>,
    /// What no worker reaches, whatever it is said to: signing keys, sockets of agents, other workers' files.
    pub never: Vec<PathBuf>,
    /// What workers of any executor may write besides their attempts' own files.
    pub worked: Vec<PathBuf>,
    /// The variables of the environment that workers get because they say where tools lie.
    pub variables: BTreeMap<String, OsString>,
    /// Folders that XDG variables put in the place of usual ones, by the usual place below the home directory.
    pub moved: Vec<(&'static str, PathBuf)>,
    /// The folder of workers' private files.
    pub private: PathBuf,
    /// The folder of all worktrees.
    pub trees: PathBuf,
    /// The machine's files that only few may read, and we could. Empty until the folders are looked through.
    pub kept: Vec<PathBuf>,
}

impl Surroundings {
    /// Looks through the machine's folders for files that only few may read. It takes long in large folders, so it is done
    /// once for all executors.
    pub(super) fn look(&mut self) {
        let bit = bit_for_others(umask());
        let settings = if rustix::process::geteuid().is_root() { OTHERS } else { bit };
        let folders = SELF_INSTALLED.map(|folder| (folder, bit, MOST_LOOKED));
        let folders = std::iter::once((SETTINGS, settings, usize::MAX)).chain(folders);
        let kept = |(folder, bits, most)| kept_by_mode(Path::new(folder), bits, most, &self.worked);
        self.kept = folders.flat_map(kept).collect();
    }

    /// Returns where a path of the home directory lies if an XDG variable moves it.
    pub(super) fn moved(&self, below: &str) -> Option<PathBuf> {
        let mut moved = self.moved.iter();
        moved.find_map(|(usual, folder)| Some(folder.join(Path::new(below).strip_prefix(usual).ok()?)))
    }

    /// Returns the usual place below the home directory of a path in a folder that an XDG variable names.
    pub(super) fn usual(&self, path: &Path) -> Option<PathBuf> {
        let mut moved = self.moved.iter();
        moved.find_map(|(usual, folder)| Some(Path::new(usual).join(path.strip_prefix(folder).ok()?)))
    }

    /// Returns the value of a variable that workers get.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }
}

/// What one executor's workers reach besides the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct More {
    /// How much is asked for.
    pub asked: Asked,
    /// Which home directory they have.
    pub home: Home,
    /// What they may read; absolute.
    pub readable: Vec<PathBuf>,
    /// What they may write; absolute.
    pub writable: Vec<PathBuf>,
    /// Files that the configured command lines name.
    pub named: Vec<PathBuf>,
}

impl More {
    /// Returns the paths that settings name, links resolved.
    fn asked_for(&self) -> Vec<PathBuf> {
        self.readable.iter().chain(&self.writable).filter_map(|path| fs::canonicalize(path).ok()).collect()
    }

    /// Returns true if a setting names the path itself.
    fn names(&self, path: &Path) -> bool {
        self.readable.iter().chain(&self.writable).any(|named| named == path)
    }

    /// Returns which setting gives a folder, which leads through no links.
    pub(super) fn giver(&self, folder: &Path) -> &'static str {
        let leads = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|real| real == folder);
        match self {
            _ if self.writable.iter().any(leads) => "writable",
            _ if self.readable.iter().any(leads) => "readable",
            _ if self.home == Home::Real => "home",
            _ => "PATH",
        }
    }
}

/// What an executor's workers reach, but for the files of the attempt itself.
#[derive(Clone, Debug)]
pub(in crate::worker) struct Reach {
    pub(super) map: Map,
    /// What Landlock gives, looked up once.
    pub(super) given: Vec<(Word, Access)>,
    /// What lies at the same place below a private home directory, and where it is.
    pub(super) at_home: Vec<(PathBuf, PathBuf)>,
    /// The caches of tools.
    pub(super) caches: Caches,
    /// The home directory of who drives the run.
    pub(super) home: Option<PathBuf>,
    /// The folder of all worktrees.
    pub(super) trees: PathBuf,
    /// What is hidden as a whole, and of which a part may be linked into worktrees: homes and work trees.
    pub(super) apart: Vec<PathBuf>,
    /// What is secret in home directories and was not asked for by its own name, whether it is there or not.
    pub(super) secrets: Vec<PathBuf>,
    /// Whether others may write somewhere in it, or it was given places that anybody may write.
    pub(super) shares: bool,
}

impl Reach {
    /// Says what an executor's workers reach; fails where they are to write what is not there, or what a worker may have put a link to.
    pub(super) fn of(around: &Surroundings, more: &More) -> Result<Self, Refused> {
        let mut map = Map::among(&around.worked);
        for place in SYSTEM {
            map.set(Path::new(place), Access::Read);
        }
        for file in SYSTEM_FILES {
            map.set(Path::new(file), Access::Read);
        }
        for secret in SYSTEM_SECRETS.map(Path::new).into_iter().filter(|secret| secret.exists()) {
            map.set(secret, Access::Hidden);
        }
        let asked = more.asked_for();
        hide_by_mode(&mut map, &around.kept, &asked);
        let home = around.home.as_deref().and_then(|home| fs::canonicalize(home).ok());
        let mut homes: Vec<PathBuf> = home.iter().cloned().chain(peoples_homes()).collect();
        // Also where they lie among programs.
        for own in homes.iter().chain(&around.work_trees) {
            if map.access(own) != Access::Hidden {
                map.set(own, Access::Hidden);
            }
        }
        if more.home == Home::Real
            && let Some(home) = &home
        {
            map.set(home, Access::Write);
            for tree in &around.work_trees {
                map.set(tree, Access::Read);
            }
        }
        let mut secrets = Vec::new();
        if more.asked != Asked::Strict {
            let programs = Programs { map: &mut map, around, homes: &mut homes, asked: &asked, secrets: Vec::new() };
            secrets = programs.add(home.as_deref());
            keep_apart(&mut map, around, home.as_deref().filter(|_| more.home == Home::Real));
        }
        // What an agent would make on its first day need not be there yet.
        for path in &more.readable {
            by_no_planted_link(&mut map, path)?;
            map.set(path, Access::Read);
        }
        let give = |path: &PathBuf| -> Result<PathBuf, Refused> {
            by_no_planted_link(&mut map, path)?;
            Ok(map.give_whole(path).ok_or_else(|| Missing(path.clone()))?)
        };
        let writable = more.writable.iter().map(give).collect::<Result<Vec<PathBuf>, Refused>>()?;
        let own_home = home.as_ref();
        secrets.retain(|secret| !more.names(secret));
        for secret in &secrets {
            // As with the secrets of homes, nothing is kept free where a setting lets workers write.
            let is_free = !writable.iter().any(|folder| secret.starts_with(folder));
            if map.access(secret) != Access::Hidden && (is_free || secret.exists()) {
                map.set(secret, Access::Hidden);
            }
        }
        for home in &homes {
            let own = Some(around).filter(|_| Some(home) == own_home);
            secrets.extend(secrets_of(&mut map, (home, own), more, &writable));
        }
        // By where it leads to as well: a link can be whoever's.
        for path in more.named.iter().filter(|path| !is_secret(path, &homes)) {
            let Some(Led { real, is_there: true, planted: None }) = map.resolve(path) else { continue };
            if !is_secret(&real, &homes)
                && !secrets.iter().any(|secret| real.starts_with(secret))
                && map.access(&real) == Access::Hidden
                && !is_led_away(path, &real, &around.work_trees)
            {
                map.set(&real, Access::Read);
            }
        }
        for path in around.git_dirs.iter().chain(&around.never) {
            map.hide(path);
        }
        let is_own = |folder: &Path| around.git_dirs.iter().any(|git_dir| folder.starts_with(git_dir));
        for path in around.objects.iter().filter_map(|folder| fs::canonicalize(folder).ok()) {
            if is_own(&path) || holds_objects(&path) {
                map.set(&path, Access::Read);
            }
        }
        if more.asked != Asked::Strict {
            for path in around.remotes.iter().filter_map(|path| fs::canonicalize(path).ok()) {
                if !path.ends_with("objects") || holds_objects(&path) {
                    map.set(&path, Access::Read);
                }
            }
        }
        // Below the objects, too: a key is nobody's object.
        for path in &around.never {
            map.hide(path);
        }
        servers::hide(&mut map, around, &homes);
        outside::keep(&mut map, around);
        let caches = match &home {
            Some(home) if more.asked != Asked::Strict => Caches::find(&map, around, more, home),
            _ => Caches::default(),
        };
        let at_home = match (&home, more.home) {
            (Some(home), Home::Private) => at_home(&map, around, home, caches.known()),
            _ => Vec::new(),
        };
        let mut given = map.given();
        given.push((SHARED_MEMORY.into(), Access::Write));
        let given = given.into_iter().map(|(path, access)| (path.into(), access)).collect();
        let apart = homes.into_iter().chain(around.work_trees.iter().cloned()).collect();
        let is_given = !more.readable.is_empty() || !more.writable.is_empty() || more.home == Home::Real;
        let shares = is_given || around.worked.iter().any(|folder| reaches(&map, folder));
        Ok(Self { map, given, at_home, caches, home, trees: around.trees.clone(), apart, secrets, shares })
    }
}

/// Hides the work trees that lie among tools and caches. Lets workers with a `real` home, which has these trees, write the caches
/// in it: they are the user's own.
fn keep_apart(map: &mut Map, around: &Surroundings, real: Option<&Path>) {
    let Some(home) = real else {
        for tree in around.work_trees.iter().filter(|tree| map.access(tree) != Access::Hidden).collect::<Vec<_>>() {
            map.set(tree, Access::Hidden);
        }
        return;
    };
    for place in TOOLS.caches.iter().map(|cache| home.join(cache.path)) {
        let led = Map::default().resolve(&place);
        if led.is_some_and(|led| led.real.starts_with(home) && map.access(&led.real) == Access::Read) {
            map.set(&place, Access::Write);
        }
    }
}

/// Hides the files of the machine that only few may read, and we could.
///
/// A setting that names a folder of programs gives all of it that is no secret of a home directory.
fn hide_by_mode(map: &mut Map, kept: &[PathBuf], asked: &[PathBuf]) {
    for file in kept {
        if file.starts_with(SETTINGS) || !asked.iter().any(|folder| file.starts_with(folder)) {
            map.set(file, Access::Hidden);
        }
    }
}

/// Returns whether anything in a folder is reached.
pub(super) fn reaches(map: &Map, folder: &Path) -> bool {
    let mut below = map.places().filter(|(place, _)| place.starts_with(folder));
    map.access(folder) != Access::Hidden || below.any(|(_, access)| access != Access::Hidden)
}

/// Refuses a path that leads through a link which a worker may have put there: it would lead others to whatever that one likes.
fn by_no_planted_link(map: &mut Map, path: &Path) -> Result<(), Refused> {
    match map.resolve(path).and_then(|led| led.planted) {
        Some(link) => Err(Refused::Planted { path: path.to_owned(), link }),
        None => Ok(()),
    }
}

/// Whether a folder holds objects and nothing else: whoever may write a repository that ours borrows from can name any folder as one
/// that it borrows from.
fn holds_objects(folder: &Path) -> bool {
    let is_ours = |name: &OsStr| {
        let name = name.as_bytes();
        let is_objects = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        let is_passing = name.starts_with(b"tmp_") || name.starts_with(b"incoming-") || name.ends_with(b".lock");
        matches!(name, b"pack" | b"info") || is_objects || is_passing
    };
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten().peekable();
    entries.peek().is_some() && entries.all(|entry| is_ours(&entry.file_name()))
}

/// Returns the value of `PATH` as folders, without those that are relative to where a program runs.
pub fn folders(path: Option<&OsString>) -> Vec<PathBuf> {
    let parts = path.into_iter().flat_map(|path| path.as_bytes().split(|byte| *byte == b':'));
    parts.map(|part| PathBuf::from(OsStr::from_bytes(part))).filter(|folder| folder.is_absolute()).collect()
}

/// Something that a worker is to write is not there.
#[derive(Debug, thiserror::Error)]
#[error("{} is to be writable for it and is not there; make it first", .0.display())]
pub struct Missing(PathBuf);

impl Missing {
    /// Where it would be.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
