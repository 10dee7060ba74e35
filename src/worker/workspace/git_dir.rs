//! Git directories that the repository knows nothing of: one for each worker, and one for our own captures.
//!
//! They borrow the repository's objects through alternates. What a worker commits there does not exist for the repository:
//! its `git gc`, `git fsck` and refs are not affected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice as _};
use gix::config::Source;

use super::annex::{self, Annex};
use super::extras::Extras;
use super::git_config::{Config, quoted};
use super::sparse::Sparse;
use super::{Error, remotes};
use crate::git::store::Store;
use crate::git::{folder, refs};
use crate::model::digest::Oid;
use crate::worker::host::Host;

/// Settings that decide how bytes and names in a worktree become bytes and names in git.
const CONVERSIONS: [&str; 8] = [
    "autocrlf",
    "eol",
    "filemode",
    "symlinks",
    "ignorecase",
    "precomposeunicode",
    "checkRoundtripEncoding",
    "bigFileThreshold",
];

/// Files of the user's that decide as well: the settings that name them, and what they are called where none does.
const FILES: [(&str, &str); 2] = [("attributesFile", "attributes"), ("excludesFile", "ignore")];

/// Where git-crypt keeps the keys of a repository that is unlocked.
const CRYPT_KEYS: &str = "git-crypt/keys";

/// The branch on which git-annex keeps what it knows.
const ANNEX_BRANCH: &str = "refs/heads/git-annex";

/// The branch of an empty repository in the folder of a submodule that is not checked out. git names it where a command fails there.
const UNBORN: &str = "ref: refs/heads/submodule-not-checked-out\n";

/// The file of a worker's git directory that its `core.excludesFile` names. Programs that obey ignore rules without asking git
/// read `info/exclude`, and would pass over `inputs/` and `outputs/` if these stood there.
const EXCLUDES: &str = "info/handoff-exclude";

/// A file's path below a git directory, and its content.
type NamedFile = (Cow<'static, str>, Vec<u8>);

/// The content of a git directory, but for objects, refs and index.
pub(in crate::worker) struct GitDir {
    files: Vec<NamedFile>,
    /// What the [`FILES`] hold, where git is to see just that.
    users: Vec<Vec<u8>>,
    /// The filters that what is captured goes through. They stand in none of its files: git knows of them only where it is told to.
    filters: Vec<Filter>,
    /// Where the repository has what git-lfs keeps.
    lfs: PathBuf,
    /// What git-annex keeps beside the repository, if it does.
    annex: Option<Annex>,
}

/// One section of filters, as it is configured.
struct Filter {
    name: BString,
    settings: Vec<(&'static str, BString)>,
}

impl GitDir {
    /// Returns the private git directory of a worker: what the repository itself configures, the rest from its user's files.
    ///
    /// It has no `HEAD` and no refs; [`Refs`](super::refs::Refs) adds them.
    pub(super) fn for_worker(host: &Host, extras: &Extras, sparse: Option<Sparse>) -> Result<Self, Error> {
        let mut config = worker_config(host, &host.store);
        if let Some(sparse) = &sparse {
            config.section("core", None);
            config.value("sparseCheckout", b"true");
            config.value("sparseCheckoutCone", if sparse.cone { b"true" } else { b"false" });
        }
        if host.give_refs {
            remotes::copy(&host.store, &mut config);
        }
        let users = users_file(host, &host.store, "excludesFile", "ignore")?;
        let mut made = Self::new(&host.store, config, std::iter::empty())?;
        made.files.push((EXCLUDES.into(), excluding(users, ours(host, extras))));
        made.files.extend(sparse.map(|sparse| ("info/sparse-checkout".into(), sparse.patterns)));
        Ok(made)
    }

    /// Returns the private git directory of a worker in a submodule: its `HEAD` is the commit, and it has no branches and tags.
    pub(super) fn for_worker_in_submodule(host: &Host, store: &Store, head: Oid) -> Result<Self, Error> {
        let users = users_file(host, store, "excludesFile", "ignore")?;
        let mut made = Self::new(store, worker_config(host, store), std::iter::empty())?;
        made.files.push((EXCLUDES.into(), users));
        made.files.push(("HEAD".into(), format!("{head}\n").into_bytes()));
        Ok(made)
    }

    /// Returns the git directory of an empty repository, for the folder of a submodule that is not checked out.
    ///
    /// Without one git finds the repository around that folder: `git -C <path> apply` passes over every file and exits with 0.
    pub(super) fn empty(store: &Store) -> Self {
        let files = vec![("config".into(), Config::new(store).text), ("HEAD".into(), UNBORN.into())];
        Self { files, users: Vec::new(), filters: Vec::new(), lfs: store.common_dir().join("lfs"), annex: None }
    }

    /// Returns the git directory that we capture with.
    ///
    /// It holds every setting that decides what is captured, of whatever scope, as it was before any worker ran, so that git
    /// needs none of the files that a worker could have changed in the meantime.
    pub(super) fn for_capture(host: &Host, head: Oid, extras: &Extras) -> Result<Self, Error> {
        Self::capturing(host, &host.store, head, ours(host, extras))
    }

    /// Returns the git directory that we capture a submodule with: as [`Self::for_capture`], of its own repository.
    pub(super) fn for_submodule(host: &Host, store: &Store, head: Oid) -> Result<Self, Error> {
        Self::capturing(host, store, head, std::iter::empty())
    }

    fn capturing<'a>(
        host: &Host,
        store: &Store,
        head: Oid,
        left_out: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, Error> {
        let mut config = Config::new(store);
        config.conversions(store, CONVERSIONS, |_| true);
        // A conversion that does not round-trip is the worker's decision, not a reason to lose its work.
        config.section("core", None);
        config.value("safecrlf", b"false");
        if Annex::find(store).is_some() {
            annex::configure(store, &mut config);
        }
        let users = FILES.map(|(setting, name)| users_file(host, store, setting, name));
        let users = users.into_iter().collect::<Result<_, _>>()?;
        let mut made = Self::new(store, config, left_out)?;
        made.files.push(("HEAD".into(), format!("{head}\n").into_bytes()));
        if let Some(branch) = refs::read(store, ANNEX_BRANCH).map_err(|e| Error::Checkout(Box::new(e)))? {
            // It may say which files are large.
            made.files.push((ANNEX_BRANCH.into(), format!("{branch}\n").into_bytes()));
        }
        Ok(Self { users, filters: filters(host, store, |_| true), ..made })
    }

    fn new<'a>(store: &Store, config: Config, left_out: impl Iterator<Item = &'a [u8]>) -> Result<Self, Error> {
        let common = store.common_dir();
        let exclude = read_if_any(&common.join("info/exclude"))?.unwrap_or_default();
        let mut files = vec![
            ("config".into(), config.text),
            ("objects/info/alternates".into(), alternates(store)?),
            ("info/exclude".into(), excluding(exclude, left_out)),
        ];
        for name in ["info/attributes", "shallow"] {
            if let Some(bytes) = read_if_any(&common.join(name))? {
                files.push((name.into(), bytes));
            }
        }
        files.extend(crypt_keys(&common)?);
        Ok(Self { files, users: Vec::new(), filters: Vec::new(), lfs: common.join("lfs"), annex: Annex::find(store) })
    }

    /// Returns whether there are filters that something of what is captured may go through.
    pub(in crate::worker) fn has_filters(&self) -> bool {
        self.filters.iter().any(Filter::is_for_capture)
    }

    /// Returns whether there is such a filter of this name.
    pub(in crate::worker) fn has_filter(&self, name: &[u8]) -> bool {
        self.filters.iter().any(|filter| filter.name == name && filter.is_for_capture())
    }

    /// Returns the settings by which git runs the filters; what git-lfs keeps goes to `lfs`.
    pub(in crate::worker) fn filter_settings(&self, lfs: &Path) -> Vec<u8> {
        let mut config = Config { text: Vec::new() };
        for filter in &self.filters {
            config.filter(filter.name.as_bstr(), &filter.settings);
            // What one that fails would have made of a file is not what the file holds.
            if filter.converts() {
                config.value("required", b"true");
            }
        }
        config.section("lfs", None);
        config.value("storage", lfs.as_os_str().as_encoded_bytes());
        config.text
    }

    /// Returns where the repository has what git-lfs keeps.
    pub(in crate::worker) fn lfs(&self) -> &Path {
        &self.lfs
    }

    /// Makes the links of locked files lead to their contents, where this is the git directory of a worker.
    pub(super) fn link_contents(&self, dir: &Path) -> io::Result<()> {
        self.annex.as_ref().map_or(Ok(()), |annex| annex.link(dir))
    }

    /// Makes git-annex add contents to the repository itself, where it runs with our rights.
    pub(in crate::worker) fn lend_annex(&self, dir: &Path) -> io::Result<()> {
        self.annex.as_ref().map_or(Ok(()), |annex| annex.lend(dir))
    }

    /// Returns the content of one of its files.
    pub(super) fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(known, _)| *known == name).map(|(_, bytes)| bytes.as_slice())
    }

    /// Makes the git directory at `dir`, which must not exist.
    pub(in crate::worker) fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)?;
        for name in ["objects", "objects/info", "refs", "refs/heads", "info"] {
            fs::create_dir(dir.join(name))?;
        }
        for (name, bytes) in &self.files {
            let path = dir.join(&**name);
            fs::create_dir_all(path.parent().unwrap_or(dir))?;
            fs::write(&path, bytes)?;
        }
        if self.users.is_empty() {
            return Ok(());
        }
        let mut config = Config { text: Vec::new() };
        config.section("core", None);
        for ((setting, name), bytes) in FILES.iter().zip(&self.users) {
            let path = dir.join(name);
            fs::write(&path, bytes)?;
            config.value(setting, path.as_os_str().as_encoded_bytes());
        }
        fs::File::options().append(true).open(dir.join("config"))?.write_all(&config.text)
    }
}

/// Starts the configuration of a worker's git directory: the settings and filters of the repository itself, and the identity.
fn worker_config(host: &Host, store: &Store) -> Config {
    let mut config = Config::new(store);
    let own = remotes::is_own;
    config.conversions(store, CONVERSIONS.into_iter().chain(["attributesFile"]), own);
    // A relative path: git follows it from the top of the worktree, wherever the pool has moved that.
    config.value("excludesFile", format!(".git/{EXCLUDES}").as_bytes());
    let has_annex = Annex::find(store).is_some();
    // What it would add to the annex is for the capture to add.
    let is_given = |filter: &&Filter| !has_annex || filter.name != annex::FILTER;
    let filters = filters(host, store, own);
    filters.iter().filter(is_given).for_each(|filter| config.filter(filter.name.as_bstr(), &filter.settings));
    config.identity(host);
    config
}

/// Returns the keys of a repository that git-crypt has unlocked: without them its filter encrypts nothing.
fn crypt_keys(common: &Path) -> Result<Vec<NamedFile>, Error> {
    let folder = common.join(CRYPT_KEYS);
    let mut keys = Vec::new();
    for path in folder::entries(&folder, |_| true) {
        let name = path.file_name().and_then(OsStr::to_str);
        if let Some((name, key)) = name.zip(read_if_any(&path)?) {
            keys.push((format!("{CRYPT_KEYS}/{name}").into(), key));
        }
    }
    Ok(keys)
}

/// Returns the settings of whoever commits, as a file of git's: all that a home directory of a worker's own says.
pub(super) fn identity(host: &Host) -> Vec<u8> {
    let mut config = Config { text: Vec::new() };
    config.identity(host);
    config.text
}

/// The object directories that objects are borrowed from.
///
/// The repository's own alternates are listed too: git takes relative ones only in the repository that names them.
fn alternates(store: &Store) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    for dir in store.object_dirs().map_err(|e| Error::Checkout(Box::new(e)))? {
        let path = dir.as_os_str().as_encoded_bytes();
        if path.contains(&b'\n') {
            lines.extend_from_slice(&quoted(path));
        } else {
            lines.extend_from_slice(path);
        }
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Our two folders, and what else was put into a worktree: they are never part of a change.
fn ours<'a>(host: &'a Host, extras: &'a Extras) -> impl Iterator<Item = &'a [u8]> {
    let folders = [host.inputs.as_bytes(), host.outputs.as_bytes()].into_iter();
    folders.chain(extras.unknown().map(|path| path.as_bytes()))
}

/// Adds paths to the lines of an exclude file.
fn excluding<'a>(mut lines: Vec<u8>, left_out: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    if !lines.is_empty() && !lines.ends_with(b"\n") {
        lines.push(b'\n');
    }
    for folder in left_out {
        lines.push(b'/');
        for &byte in folder {
            if matches!(byte, b'\\' | b'*' | b'?' | b'[' | b' ') {
                lines.push(b'\\');
            }
            lines.push(byte);
        }
        lines.push(b'\n');
    }
    lines
}

/// Returns what a file of the user's holds that a setting names, or that git looks for where there is none.
fn users_file(host: &Host, store: &Store, setting: &str, name: &str) -> Result<Vec<u8>, Error> {
    let repo = store.local();
    let key = format!("core.{setting}");
    let named = repo.config_snapshot().trusted_path(key.as_str()).map_err(|e| Error::Checkout(Box::new(e)))?;
    // As git takes one that is relative, in the folder that somebody works in.
    let named = named.map(|path| repo.workdir().map(|top| top.join(&path)).unwrap_or(path));
    let path = named.or_else(|| Some(host.user_files.as_ref()?.join(name)));
    Ok(path.map(|path| read_if_any(&path)).transpose()?.flatten().unwrap_or_default())
}

fn read_if_any(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::io(path, e)),
    }
}

impl Filter {
    /// Leaves out empty commands, which git does not run; with an empty `process`, git runs none of them.
    fn new(name: BString, mut settings: BTreeMap<&'static str, BString>) -> Self {
        let is_off = settings.get("process").is_some_and(|command| command.is_empty());
        settings.retain(|name, command| *name == "required" || !(is_off || command.is_empty()));
        Self { name, settings: settings.into_iter().collect() }
    }

    /// Returns whether it has a say in what git takes in.
    fn is_for_capture(&self) -> bool {
        self.settings.iter().any(|(name, _)| matches!(*name, "clean" | "process" | "required"))
    }

    /// Returns whether it makes something else of what git takes in.
    fn converts(&self) -> bool {
        self.settings.iter().any(|(name, _)| matches!(*name, "clean" | "process"))
    }
}

/// Returns the filters of the scopes that `wanted` picks, but for that of git-lfs where it is not to run.
///
/// Sections of one name are one filter, in which the last of each setting counts.
fn filters(host: &Host, store: &Store, wanted: impl Fn(Source) -> bool) -> Vec<Filter> {
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    let sections = snapshot.plumbing().sections_by_name("filter").into_iter().flatten();
    let mut found: BTreeMap<BString, BTreeMap<&'static str, BString>> = BTreeMap::new();
    for section in sections.filter(|section| wanted(section.meta().source)) {
        let Some(name) = section.header().subsection_name().filter(|name| host.lfs || *name != "lfs") else { continue };
        let known = ["clean", "smudge", "process", "required"];
        let settings = known.into_iter().filter_map(|name| Some((name, section.value(name)?.as_bstr().to_owned())));
        found.entry(name.to_owned()).or_default().extend(settings);
    }
    found.into_iter().map(|(name, settings)| Filter::new(name, settings)).collect()
}
