//! Decides what workers reach on this machine. Facts common to all workers are looked up once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::panic;
use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use serde::{Deserialize, Serialize};

use super::access_map::{Access, AccessMap};
use super::caches::Caches;
use super::default_paths::{SELF_INSTALLED, SETTINGS, SHARED_MEMORY, SYSTEM, SYSTEM_FILES, SYSTEM_SECRETS};
use super::home::at_home;
use super::line_paths::is_led_away;
use super::programs::Programs;
use super::resolve::Led;
use super::secrets::{MOST_LOOKED, OTHERS, bit_for_others, is_secret, kept_by_mode, peoples_homes, secrets_of, umask};
use super::tools::TOOLS;
use super::{PrivateCopy, Refused, Word, outside, private_copies, servers};
use crate::model::confinement::{Asked, Home};

/// The facts about a machine and a repository that determine what workers reach.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home directory of the user who drives the run.
    pub home: Option<PathBuf>,
    /// The absolute folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// The git directories of the repository.
    pub git_dirs: Vec<PathBuf>,
    /// The object directories of the repository and its alternates.
    pub objects: Vec<PathBuf>,
    /// The files that `git fetch` reads in remotes on this machine.
    pub remotes: Vec<PathBuf>,
    /// The work trees of the repository.
    pub work_trees: Vec<PathBuf>,
    /// Programs started unconfined by path.
    pub programs: Vec<PathBuf>,
    /// Absolute paths that git or this program reads or runs unconfined; they may not exist.
    pub outside: Vec<PathBuf>,
    /// Paths that no worker ever reaches: signing keys, agents' sockets, other workers' files.
    pub never: Vec<PathBuf>,
    /// The places of known agents' folders, which are secret.
    pub agents: Vec<PathBuf>,
    /// Paths that workers of any executor may write, besides their attempts' own files.
    pub worked: Vec<PathBuf>,
    /// The environment variables that workers get because they say where tools are.
    pub variables: BTreeMap<String, OsString>,
    /// Folders that XDG variables move, by their usual place in the home directory.
    pub moved: Vec<(&'static str, PathBuf)>,
    /// The folder of workers' private files.
    pub private: PathBuf,
    /// The folder of all worktrees.
    pub trees: PathBuf,
    /// Files that we may read and most users may not. Empty until the folders are searched.
    pub private_files: Vec<PathBuf>,
}

impl Surroundings {
    /// Searches the machine's folders for such files. This is slow in large folders, so it is done
    /// once for all executors.
    pub(super) fn look(&mut self) {
        let bit = bit_for_others(umask());
        let settings = if rustix::process::geteuid().is_root() { OTHERS } else { bit };
        let folders = SELF_INSTALLED.map(|folder| (folder, bit, MOST_LOOKED));
        let folders = std::iter::once((SETTINGS, settings, usize::MAX)).chain(folders);
        let worked = &self.worked;
        self.private_files = thread::scope(|scope| {
            let searches: Vec<_> = folders
                .map(|(folder, bits, most)| scope.spawn(move || kept_by_mode(Path::new(folder), bits, most, worked)))
                .collect();
            searches.into_iter().flat_map(joined).collect()
        });
    }

    /// Returns the path to which an XDG variable moves a path of the home directory.
    pub(super) fn moved(&self, below: &str) -> Option<PathBuf> {
        let mut moved = self.moved.iter();
        moved.find_map(|(usual, folder)| Some(folder.join(Path::new(below).strip_prefix(usual).ok()?)))
    }

    /// Returns the usual place in the home directory of a path that an XDG variable moved.
    pub(super) fn usual(&self, path: &Path) -> Option<PathBuf> {
        let mut moved = self.moved.iter();
        moved.find_map(|(usual, folder)| Some(Path::new(usual).join(path.strip_prefix(folder).ok()?)))
    }

    /// Returns the value of a variable for workers.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }
}

/// The additional paths of one executor's workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct More {
    /// The requested level of confinement.
    #[serde(rename = "asked")]
    pub mode: Asked,
    /// The kind of home directory.
    pub home: Home,
    /// Absolute readable paths.
    pub readable: Vec<PathBuf>,
    /// Absolute writable paths.
    pub writable: Vec<PathBuf>,
    /// Files that the configured command lines name.
    #[serde(rename = "named")]
    pub line_paths: Vec<PathBuf>,
    /// Folders and files of which each attempt gets a private copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<PrivateCopy>,
}

impl More {
    /// Returns the paths that settings name, links resolved.
    fn asked_for(&self) -> Vec<PathBuf> {
        self.readable.iter().chain(&self.writable).filter_map(|path| fs::canonicalize(path).ok()).collect()
    }

    /// Returns true if a setting names the path itself.
    fn names(&self, path: &Path) -> bool {
        self.readable.iter().chain(&self.writable).any(|given| given == path)
    }

    /// Returns the name of the setting that grants a folder without links in its path.
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

/// The paths that an executor's workers reach, without the attempt's own files.
#[derive(Clone, Debug)]
pub(crate) struct ExecutorPolicy {
    pub(super) map: AccessMap,
    /// The Landlock rules, computed once.
    pub(super) given: Vec<(Word, Access)>,
    /// The links in a private home directory with their targets.
    pub(super) at_home: Vec<(PathBuf, PathBuf)>,
    /// The caches of tools.
    pub(super) caches: Caches,
    /// Folders and files of which each attempt gets a private copy.
    pub(super) private: Vec<PrivateCopy>,
    /// The home directory of the user who drives the run.
    pub(super) home: Option<PathBuf>,
    /// The folder of all worktrees.
    pub(super) trees: PathBuf,
    /// Home directories and work trees, which are hidden, but of which parts may be linked into
    /// worktrees.
    pub(super) homes_and_trees: Vec<PathBuf>,
    /// Secrets in home directories that no setting names, existing or not.
    pub(super) secrets: Vec<PathBuf>,
    /// True if other workers may write somewhere in it, or if it includes places that everyone may
    /// write.
    pub(super) shares: bool,
}

impl ExecutorPolicy {
    /// Computes what an executor's workers reach. Fails if a writable path does not exist or may be
    /// a link made by a worker.
    pub(super) fn new(around: &Surroundings, more: &More) -> Result<Self, Refused> {
        let mut map = AccessMap::begin(&around.worked);
        give_system(&mut map);
        let configured = more.asked_for();
        hide_by_mode(&mut map, &around.private_files, &configured);
        let home = around.home.as_deref().and_then(|home| fs::canonicalize(home).ok());
        let mut homes: Vec<PathBuf> = home.iter().cloned().chain(peoples_homes()).collect();
        let real = home.as_deref().filter(|_| more.home == Home::Real);
        set_homes(&mut map, &homes, real, &around.work_trees);
        let mut secrets = Vec::new();
        if more.mode != Asked::Strict {
            let programs =
                Programs { map: &mut map, around, homes: &mut homes, configured: &configured, secrets: Vec::new() };
            secrets = programs.add(home.as_deref());
            keep_apart(&mut map, around, real);
        }
        let writable = give_configured(&mut map, more)?;
        secrets.retain(|secret| !more.names(secret));
        hide_secrets(&mut map, &secrets, &writable);
        for own in &homes {
            let around = Some(around).filter(|_| Some(own) == home.as_ref());
            secrets.extend(secrets_of(&mut map, own, around, more, &writable));
        }
        give_named(&mut map, &more.line_paths, &homes, &secrets, &around.work_trees);
        give_objects(&mut map, around, more.mode);
        servers::hide(&mut map, around, &homes);
        outside::keep(&mut map, around);
        let caches = match &home {
            Some(home) if more.mode != Asked::Strict => Caches::find(&map, around, more, home),
            _ => Caches::default(),
        };
        let private = private_copies::check(&mut map, more)?;
        private_copies::hide(&mut map, around, more);
        map.finish();
        let at_home = match (&home, more.home) {
            (Some(home), Home::Private) => at_home(&map, around, home, caches.known()),
            _ => Vec::new(),
        };
        let mut given = map.given();
        given.push((SHARED_MEMORY.into(), Access::Write));
        let given = given.into_iter().map(|(path, access)| (path.into(), access)).collect();
        let homes_and_trees = homes.into_iter().chain(around.work_trees.iter().cloned()).collect();
        // A login that is renewed is shared by all who have it.
        let is_given =
            !more.readable.is_empty() || !more.writable.is_empty() || !private.is_empty() || more.home == Home::Real;
        let shares = is_given || around.worked.iter().any(|folder| reaches(&map, folder));
        let trees = around.trees.clone();
        Ok(Self { map, given, at_home, caches, private, home, trees, homes_and_trees, secrets, shares })
    }
}

/// Returns the result of a thread, and passes its panic on.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|e| panic::resume_unwind(e))
}

/// Returns a map of the machine's programs alone.
pub(super) fn system() -> AccessMap {
    let mut map = AccessMap::default();
    give_system(&mut map);
    map
}

fn give_system(map: &mut AccessMap) {
    for place in SYSTEM {
        map.set(Path::new(place), Access::Read);
    }
    for file in SYSTEM_FILES {
        map.set(Path::new(file), Access::Read);
    }
    for secret in SYSTEM_SECRETS.map(Path::new).into_iter().filter(|secret| secret.exists()) {
        map.set(secret, Access::Hidden);
    }
}

/// Hides home directories and work trees, except for workers with a `real` home.
fn set_homes(map: &mut AccessMap, homes: &[PathBuf], real: Option<&Path>, work_trees: &[PathBuf]) {
    // Even inside program folders.
    for own in homes.iter().chain(work_trees) {
        if map.access(own) != Access::Hidden {
            map.set(own, Access::Hidden);
        }
    }
    if let Some(home) = real {
        map.set(home, Access::Write);
        for tree in work_trees {
            map.set(tree, Access::Read);
        }
    }
}

/// Gives the configured paths. Returns the writable ones, links resolved.
fn give_configured(map: &mut AccessMap, more: &More) -> Result<Vec<PathBuf>, Refused> {
    // A path that an agent creates at its first start need not exist yet.
    for path in &more.readable {
        by_no_planted_link(map, path)?;
        map.set(path, Access::Read);
    }
    more.writable
        .iter()
        .map(|path: &PathBuf| -> Result<PathBuf, Refused> {
            by_no_planted_link(map, path)?;
            Ok(map.give_whole(path).ok_or_else(|| Missing(path.clone()))?)
        })
        .collect()
}

fn hide_secrets(map: &mut AccessMap, secrets: &[PathBuf], writable: &[PathBuf]) {
    for secret in secrets {
        // As with secrets in home directories, a missing path is not reserved where a setting
        // lets workers write.
        let is_free = !writable.iter().any(|folder| secret.starts_with(folder));
        if map.access(secret) != Access::Hidden && (is_free || secret.exists()) {
            map.set(secret, Access::Hidden);
        }
    }
}

/// Gives the files that command lines name, except secrets.
fn give_named(map: &mut AccessMap, paths: &[PathBuf], homes: &[PathBuf], secrets: &[PathBuf], work_trees: &[PathBuf]) {
    // Check the target as well: anyone may have made the link.
    for path in paths.iter().filter(|path| !is_secret(path, homes)) {
        let Some(Led { real, is_there: true, planted: None }) = map.resolve(path) else { continue };
        if !is_secret(&real, homes)
            && !secrets.iter().any(|secret| real.starts_with(secret))
            && map.access(&real) == Access::Hidden
            && !is_led_away(path, &real, work_trees)
        {
            map.set(&real, Access::Read);
        }
    }
}

/// Hides git's own files, but gives the objects, and unless `strict`, the remotes.
fn give_objects(map: &mut AccessMap, around: &Surroundings, mode: Asked) {
    for path in around.git_dirs.iter().chain(&around.never) {
        map.hide(path);
    }
    for path in around.objects.iter().filter_map(|folder| fs::canonicalize(folder).ok()) {
        if around.git_dirs.iter().any(|git_dir| path.starts_with(git_dir)) || holds_objects(&path) {
            map.set(&path, Access::Read);
        }
    }
    if mode != Asked::Strict {
        for path in around.remotes.iter().filter_map(|path| fs::canonicalize(path).ok()) {
            if !path.ends_with("objects") || holds_objects(&path) {
                map.set(&path, Access::Read);
            }
        }
    }
    // Even inside object directories: a key is not an object.
    for path in &around.never {
        map.hide(path);
    }
}

/// Hides work trees among tools and caches. With a `real` home, which contains these trees, lets
/// workers write its caches, which are the user's own.
fn keep_apart(map: &mut AccessMap, around: &Surroundings, real: Option<&Path>) {
    let Some(home) = real else {
        for tree in around.work_trees.iter().filter(|tree| map.access(tree) != Access::Hidden).collect::<Vec<_>>() {
            map.set(tree, Access::Hidden);
        }
        return;
    };
    for place in TOOLS.caches.iter().map(|cache| home.join(cache.path)) {
        let led = map.walk(&place).end();
        if led.is_some_and(|led| led.real.starts_with(home) && map.access(&led.real) == Access::Read) {
            map.set(&place, Access::Write);
        }
    }
}

/// Hides files that we may read and most users may not.
///
/// A setting that names a program folder grants all of it except the secrets of a home directory.
fn hide_by_mode(map: &mut AccessMap, files: &[PathBuf], configured: &[PathBuf]) {
    for file in files {
        if file.starts_with(SETTINGS) || !configured.iter().any(|folder| file.starts_with(folder)) {
            map.set(file, Access::Hidden);
        }
    }
}

/// Returns true if anything in a folder is reachable.
pub(super) fn reaches(map: &AccessMap, folder: &Path) -> bool {
    let mut below = map.places_below(folder);
    map.access(folder) != Access::Hidden || below.any(|(_, access)| access != Access::Hidden)
}

/// Refuses a path through a link that a worker may have made, which could redirect other workers.
pub(super) fn by_no_planted_link(map: &mut AccessMap, path: &Path) -> Result<(), Refused> {
    match map.resolve(path).and_then(|led| led.planted) {
        Some(link) => Err(Refused::Planted { path: path.to_owned(), link }),
        None => Ok(()),
    }
}

/// Returns true if a folder contains only objects: the owner of a borrowed repository can name any
/// folder as its alternate.
fn holds_objects(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten().peekable();
    entries.peek().is_some() && entries.all(|entry| is_object_entry(&entry.file_name()))
}

/// Returns true for a name that git gives in a folder of objects.
fn is_object_entry(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let is_objects = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
    let is_passing = name.starts_with(b"tmp_") || name.starts_with(b"incoming-") || name.ends_with(b".lock");
    matches!(name, b"pack" | b"info") || is_objects || is_passing
}

/// Returns the absolute folders in the value of `PATH`.
pub fn folders(path: Option<&OsString>) -> Vec<PathBuf> {
    let parts = path.into_iter().flat_map(|path| path.as_bytes().split(|byte| *byte == b':'));
    parts.map(|part| PathBuf::from(OsStr::from_bytes(part))).filter(|folder| folder.is_absolute()).collect()
}

/// A writable path that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{} should be writable but does not exist; create it first", .0.display())]
pub struct Missing(PathBuf);

impl Missing {
    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
