//! Finds the caches of the user's tools and lets a worker write to them without changing the
//! user's.
//!
//! | where | what a worker finds at the cache's place |
//! |---|---|
//! | with overlays | the user's cache, below a folder for writes ([`overlay`](super::overlay)) |
//! | up to [`MOST_COPIED`] | a private copy; above [`SMALL`] only if the worktree needs it |
//! | beyond it | an empty private folder |
//!
//! Hidden paths in a cache are left out. A cache that a setting names (`readable`, `writable`)
//! follows that setting.

mod overlays;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub use overlays::HiddenInCache;

use super::access_map::{Access, AccessMap};
use super::policy::{ExecutorPolicy, More, Surroundings};
use super::scratch::TEMPORARY;
use super::secrets::search;
use super::tools::TOOLS;
use super::{Confinement, Sandbox, java, servers, settings};

/// The variable with options that `tar` adds to its own.
const TAR_OPTIONS: &str = "TAR_OPTIONS";

/// Variables of programs that use neither `HOME` nor `TMPDIR`, with the folder below `TMPDIR` that
/// each names. Ansible asks the system for the home directory; screen uses `/run/screen`.
const IN_TMP: [(&str, &str); 2] = [("ANSIBLE_REMOTE_TEMP", "ansible"), ("SCREENDIR", "screen")];

/// The size of a folder, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// The bytes of all files.
    pub bytes: u64,
    /// The number of files and folders.
    pub files: u64,
}

/// The most bytes and files to copy for one attempt, all caches together.
pub const MOST_COPIED: Size = Size { bytes: 1 << 30, files: 100_000 };

/// The most entries of a worktree whose names say which caches it needs.
const MOST_NAMES: usize = 20_000;

/// The most bytes and files of a cache that is copied for every attempt. A larger one with a
/// `needed` line in the data file is copied for worktrees that need it.
const SMALL: Size = Size { bytes: 16 << 20, files: 1000 };

/// One kind of cache.
#[derive(Clone, Debug)]
struct Cache {
    /// Its usual place below a home directory.
    below: PathBuf,
    /// The user's path, if it exists.
    place: Option<PathBuf>,
    /// The variables that move it: name, path below the home directory at its usual place, and true
    /// if the variable is set.
    variables: Vec<(&'static str, PathBuf, bool)>,
    given: Given,
}

/// How workers get a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// Under an overlay.
    Over,
    Copied {
        /// True to copy it only for worktrees that need it.
        if_needed: bool,
    },
    Empty,
}

/// The caches of one executor's workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    all: Vec<Cache>,
    /// The usual places of all caches that no setting names, and of workers' own replacements for
    /// server files.
    known: BTreeSet<PathBuf>,
    /// The settings files of tools by their usual places.
    settings: Vec<(&'static str, PathBuf)>,
    /// True if Java is installed, which ignores `HOME` and reads the list of users.
    has_java: bool,
    /// True if Gradle's usual folder for daemons is hidden where Gradle would write to it.
    hides_gradles: bool,
}

impl Caches {
    /// Finds the caches that a map makes readable; `home` has no links in its path.
    pub(super) fn find(map: &AccessMap, around: &Surroundings, more: &More, home: &Path) -> Self {
        let configured = more.readable.iter().chain(&more.writable).filter_map(|path| fs::canonicalize(path).ok());
        let configured: Vec<PathBuf> = configured.collect();
        let paths: BTreeSet<&str> = TOOLS.caches.iter().map(|place| place.path).collect();
        let mut found = Self {
            has_java: java::is_there(around),
            hides_gradles: servers::hides_gradles(map, home),
            known: servers::below_home().collect(),
            settings: settings::places(around, home),
            ..Self::default()
        };
        for path in paths {
            let lines = || TOOLS.caches.iter().filter(move |place| place.path == path);
            let moved = lines().find_map(|place| place.moved(|name| around.variable(name)).next());
            let moved = moved.or_else(|| around.moved(path));
            let real = fs::canonicalize(moved.unwrap_or_else(|| home.join(path))).ok();
            if real.as_ref().is_some_and(|path_asked| {
                map.access(path_asked) == Access::Write
                    || configured.iter().any(|configured| configured.starts_with(path_asked))
            }) {
                continue;
            }
            found.known.insert(path.into());
            let place = real.filter(|real| real.is_dir() && map.access(real) == Access::Read);
            let variables = lines().filter_map(|variable_place| {
                let (name, below) = variable_place.variable?;
                let depth = Path::new(below).components().count();
                let usual = Path::new(path).ancestors().nth(depth)?;
                Some((name, usual.to_owned(), around.variable(name).is_some()))
            });
            let variables = variables.collect();
            found.all.push(Cache { below: path.into(), place, variables, given: Given::Empty });
        }
        // A cache inside another is part of it.
        let places: Vec<PathBuf> = found.all.iter().filter_map(|cache| cache.place.clone()).collect();
        found.all.retain(|cache| {
            let place = cache.place.as_ref();
            !place.is_some_and(|place| places.iter().any(|other| other != place && place.starts_with(other)))
        });
        found
    }

    /// Chooses an overlay for each cache if one works, otherwise a copy if all copies together are
    /// small enough.
    pub(super) fn decide(&mut self, sandbox: &Sandbox) {
        let lowers: Vec<PathBuf> = self.all.iter().filter_map(|cache| cache.place.clone()).collect();
        let working = sandbox.try_overlays(&lowers).unwrap_or_default();
        let working: BTreeSet<&PathBuf> = working.into_iter().filter_map(|n| lowers.get(n)).collect();
        for cache in &mut self.all {
            let works = cache.place.as_ref().is_some_and(|place| working.contains(place));
            cache.given = if works { Given::Over } else { Given::Empty };
        }
        self.measure();
    }

    /// Chooses the caches to copy, smallest first.
    fn measure(&mut self) {
        let left = self.all.iter_mut().filter(|cache| cache.given == Given::Empty);
        let mut sized: Vec<_> =
            left.filter_map(|cache| Some((size(cache.place.as_ref()?, MOST_COPIED)?, cache))).collect();
        sized.sort_by_key(|(size, _)| *size);
        let Size { mut bytes, mut files } = MOST_COPIED;
        for (size, cache) in sized {
            let (Some(fewer), Some(less)) = (bytes.checked_sub(size.bytes), files.checked_sub(size.files)) else {
                break;
            };
            let is_large = size.bytes > SMALL.bytes || size.files > SMALL.files;
            let if_needed = is_large && TOOLS.is_for_some(&cache.below);
            (bytes, files, cache.given) = (fewer, less, Given::Copied { if_needed });
        }
    }

    /// Returns the settings files of tools by their usual places.
    pub(super) fn settings(&self) -> &[(&'static str, PathBuf)] {
        &self.settings
    }

    /// Returns the usual places of caches below a home directory that no setting names.
    pub(super) fn known(&self) -> &BTreeSet<PathBuf> {
        &self.known
    }

    /// Returns the links of the private home with their targets.
    pub(super) fn linked(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.under_overlays().map(|under| (under.usual, under.place))
    }

    /// Returns the folders of the private home, with the cache that each is a copy of for a
    /// worktree.
    fn private_folders(&self, tree: &Path) -> impl Iterator<Item = (&Path, Option<&Path>)> {
        let has_some = self.all.iter().any(|cache| cache.given == Given::Copied { if_needed: true });
        let needed = if has_some { needed(tree) } else { BTreeSet::new() };
        let private = self.all.iter().filter(|cache| cache.given != Given::Over);
        private.filter_map(move |cache| {
            let is_copied = match cache.given {
                Given::Copied { if_needed } => !if_needed || needed.contains(&*cache.below),
                Given::Empty | Given::Over => false,
            };
            let place = cache.place.as_deref()?;
            Some((&*cache.below, is_copied.then_some(place)))
        })
    }

    /// Returns the variables for a worker with their paths below its home directory: those set
    /// outside for something that the worker has elsewhere, and the last one of each cache that was
    /// copied or omitted.
    pub(super) fn variables(&self) -> BTreeMap<&'static str, PathBuf> {
        let private = self.all.iter().filter(|cache| cache.given != Given::Over);
        let variables = private.flat_map(|cache| {
            let last = cache.variables.last().filter(|_| cache.place.is_some());
            let set = cache.variables.iter().filter(|(_, _, is_set)| *is_set);
            set.chain(last).map(|(name, below, _)| (*name, below.clone()))
        });
        variables.chain(self.has_java.then(|| ("GRADLE_USER_HOME", ".gradle".into()))).collect()
    }

    /// Returns the caches that are too large to copy, so that workers lack them.
    pub(super) fn missed(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().filter(|cache| cache.given == Given::Empty).filter_map(|cache| cache.place.as_deref())
    }
}

impl Confinement {
    /// Returns the links of a private home with their targets.
    pub fn at_home(&self) -> Vec<(PathBuf, PathBuf)> {
        self.reach
            .at_home
            .iter()
            .cloned()
            .chain(self.reach.caches.linked().map(|(below, place)| (below.to_owned(), place.to_owned())))
            .collect()
    }

    /// Returns the cache folders of a private home, with the cache that each is a copy of for a
    /// worktree, or `None` if it starts empty.
    pub fn own_caches(&self, tree: &Path) -> Vec<(&Path, Option<&Path>)> {
        if self.has_own_home() { self.reach.caches.private_folders(tree).collect() } else { Vec::new() }
    }

    /// Returns the settings files copied into a private home, with their contents.
    pub fn settings(&self) -> Vec<(PathBuf, String)> {
        let ExecutorPolicy { map, caches, .. } = &*self.reach;
        if self.has_own_home() { settings::harmless(map, &caches.settings) } else { Vec::new() }
    }

    /// Returns the content of a file of the user's as workers may have it: all of it if they reach
    /// the path, and harmless settings. Returns `None` for other files.
    pub fn given_content(&self, path: &Path, content: &[u8]) -> Option<Vec<u8>> {
        if !self.hides(path) {
            return Some(content.to_owned());
        }
        let text = self
            .reach
            .caches
            .settings
            .iter()
            .any(|(_, place)| fs::canonicalize(place).is_ok_and(|real| real == path))
            .then(|| std::str::from_utf8(content).ok());
        text.flatten().and_then(settings::harmless_part).map(String::into_bytes)
    }

    /// Returns true if workers reach nothing at a path of the user's.
    pub fn hides(&self, path: &Path) -> bool {
        self.reach.map.access(path) == Access::Hidden
    }

    /// Returns true if workers reach a path or anything below it.
    pub fn reaches(&self, path: &Path) -> bool {
        super::policy::reaches(&self.reach.map, path)
    }

    /// Returns the variables that point tools to the worker's own caches and temporary folder, and
    /// for root, tell `tar` that files keep no owner. Keeps Java options in `env`.
    pub fn cache_variables(
        &self,
        home: &Path,
        tmp: &Path,
        env: &BTreeMap<String, OsString>,
    ) -> Vec<(&'static str, OsString)> {
        let caches = &self.reach.caches;
        let home = Some(home).filter(|_| self.has_own_home());
        let own = home.into_iter().flat_map(|home| {
            caches.variables().into_iter().map(|(name, below)| (name, home.join(below).into_os_string()))
        });
        let registry = tmp.join("gradle-daemons");
        let java = java::Own {
            home,
            tmp: Some(tmp).filter(|_| !self.has_own_tmp()),
            daemons: Some(&*registry).filter(|_| caches.hides_gradles),
        };
        let java = if caches.has_java { java::options(&java, env) } else { Vec::new() };
        // Root's workers cannot give files to other users.
        let tar = rustix::process::geteuid().is_root() && !env.contains_key(TAR_OPTIONS);
        let tar = tar.then(|| (TAR_OPTIONS, "--no-same-owner".into()));
        let in_tmp = IN_TMP.iter().filter(|(name, _)| !env.contains_key(*name));
        let in_tmp = in_tmp.map(|(name, folder)| (*name, tmp.join(folder).into_os_string()));
        own.chain(java).chain(tar).chain(in_tmp).collect()
    }

    /// Returns the names of these variables.
    pub fn variable_names(&self) -> impl Iterator<Item = &'static str> {
        let any = Path::new("/");
        self.cache_variables(any, any, &BTreeMap::new()).into_iter().map(|(name, _)| name)
    }

    /// Returns remarks for people about the files that workers get here.
    pub fn remarks(&self) -> Vec<String> {
        let tmp = if self.has_own_tmp() {
            let unwritable: Vec<&str> = TEMPORARY
                .into_iter()
                .filter(|place| Path::new(place).is_dir() && !self.reach.map.is_free(Path::new(place)))
                .collect();
            let because = "of which a folder of PATH or a setting gives a part";
            (!unwritable.is_empty()).then(|| format!("workers cannot write to {}, {because}", unwritable.join(" and ")))
        } else {
            Some("without bubblewrap workers cannot write to /tmp and /var/tmp".to_owned())
        };
        let tmp = tmp.map(|why| format!("{why}; TMPDIR names a folder of their own"));
        tmp.into_iter().chain(self.missed_caches()).chain(self.kept_above()).collect()
    }

    /// Describes unreadable settings files above the worktrees, or returns `None`.
    fn kept_above(&self) -> Option<String> {
        let ExecutorPolicy { map, trees, .. } = &*self.reach;
        let files = self.hidden(map).secret_files(trees);
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        (!files.is_empty()).then(|| {
            format!(
                "workers cannot read {}, which may hold a credential: tools that read settings in every folder above a \
                 worktree fail there; move the credential to another file, or set `handoff.workspace.root` to a folder \
                 elsewhere",
                files.join(", ")
            )
        })
    }

    /// Describes the caches that start empty, with the reason, or returns `None`.
    fn missed_caches(&self) -> Option<String> {
        let missed: Vec<String> = self.reach.caches.missed().map(|place| place.display().to_string()).collect();
        let gib = MOST_COPIED.bytes >> 30;
        (self.has_own_home() && !missed.is_empty()).then(|| {
            format!(
                "workers begin with empty caches in the place of {}: no overlay can be mounted here, and copies have at \
                 most {gib} GiB and {} files",
                missed.join(", "),
                MOST_COPIED.files
            )
        })
    }
}

/// Returns the caches that a worktree needs, judged by its file names.
fn needed(tree: &Path) -> BTreeSet<&'static Path> {
    let mut needed = BTreeSet::new();
    search(
        tree,
        MOST_NAMES,
        |path: &Path, meta: &fs::Metadata| {
            let name = path.file_name().filter(|_| meta.is_file());
            needed.extend(name.into_iter().flat_map(|name| TOOLS.needed_by(name)).map(Path::new));
            false
        },
        |_| false,
    );
    needed
}

/// Returns the bytes and files of a folder, or `None` if they exceed `most`.
fn size(folder: &Path, most: Size) -> Option<Size> {
    let mut size = Size { bytes: 0, files: 0 };
    let mut left = vec![folder.to_owned()];
    while let Some(current) = left.pop() {
        for entry in fs::read_dir(current).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            size.bytes += if meta.is_file() { meta.len() } else { 0 };
            size.files += 1;
            if size.bytes > most.bytes || size.files > most.files {
                return None;
            }
            if meta.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Some(size)
}
