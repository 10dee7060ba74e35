//! Builds separate git directories: one for each worker, and one for our captures.
//!
//! They use the repository's objects through alternates. A worker's commits do not exist for the
//! repository, so its `git gc`, `git fsck` and refs are unaffected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice as _};
use gix::config::Source;

use super::extras::Extras;
use super::git_config::Config;
use super::sparse::Sparse;
use super::{Error, remotes};
use crate::git::folder;
use crate::git::store::{ATTEMPT_MARK, Store};
use crate::model::digest::Oid;
use crate::worktree::host::Host;

/// Settings that affect the conversion between worktree and git.
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

/// The user's files that affect it too: their settings and default names.
const FILES: [(&str, &str); 2] = [("attributesFile", "attributes"), ("excludesFile", "ignore")];

/// The folder of git-crypt's keys in an unlocked repository.
const CRYPT_KEYS: &str = "git-crypt/keys";

/// The branch of the empty repository in the folder of a submodule that is not checked out. git
/// shows it when a command fails there.
const UNBORN: &str = "ref: refs/heads/submodule-not-checked-out\n";

/// The file for `core.excludesFile` in a worker's git directory. Programs that read `info/exclude`
/// without asking git would skip `inputs/` and `outputs/` if those were there.
const EXCLUDES: &str = "info/handoff-exclude";

/// A file's path in a git directory, and its content.
type NamedFile = (Cow<'static, str>, Vec<u8>);

/// The content of a git directory without objects, refs and index.
pub(crate) struct GitDir {
    files: Vec<NamedFile>,
    /// The content of the [`FILES`], for captures.
    users: Vec<Vec<u8>>,
    /// The filters for captures. No file lists them: each command gets them if it should run them.
    filters: Vec<Filter>,
    /// The repository's git-lfs folder.
    lfs: PathBuf,
}

/// A configured filter.
struct Filter {
    name: BString,
    settings: Vec<(&'static str, BString)>,
}

impl GitDir {
    /// Returns a worker's private git directory with the repository's own configuration. The user's
    /// files provide the rest.
    ///
    /// It has no `HEAD` and no refs; [`Refs`](super::refs::Refs) adds them.
    pub(super) fn for_worker(host: &Host, extras: &Extras, sparse: Option<Sparse>) -> Result<Self, Error> {
        let mut config = worker_config(host, &host.store);
        if let Some(sparse) = &sparse {
            config.section("core", None);
            config.value("sparseCheckout", b"true");
            config.value("sparseCheckoutCone", if sparse.cone { b"true" } else { b"false" });
        }
        if host.settings.give_refs {
            remotes::copy(&host.store, &mut config);
        }
        let users = users_file(host, &host.store, "excludesFile", "ignore")?;
        let mut made = Self::new(&host.store, config, std::iter::empty())?;
        made.files.push((ATTEMPT_MARK.into(), Vec::new()));
        made.files.push((EXCLUDES.into(), excluding(users, ours(host, extras))));
        made.files.extend(sparse.map(|sparse| ("info/sparse-checkout".into(), sparse.patterns)));
        Ok(made)
    }

    /// Returns a worker's private git directory for a submodule: `HEAD` is the commit, and there
    /// are no branches or tags.
    pub(super) fn for_worker_in_submodule(host: &Host, store: &Store, head: Oid) -> Result<Self, Error> {
        let users = users_file(host, store, "excludesFile", "ignore")?;
        let mut made = Self::new(store, worker_config(host, store), std::iter::empty())?;
        made.files.push((ATTEMPT_MARK.into(), Vec::new()));
        made.files.push((EXCLUDES.into(), users));
        made.files.push(("HEAD".into(), format!("{head}\n").into_bytes()));
        Ok(made)
    }

    /// Returns the empty git directory for a submodule that is not checked out.
    ///
    /// Without it git would discover the repository around: `git -C <path> apply` then skips every
    /// file and exits with 0.
    pub(super) fn empty(store: &Store) -> Self {
        let files = vec![("config".into(), Config::new(store).text), ("HEAD".into(), UNBORN.into())];
        Self { files, users: Vec::new(), filters: Vec::new(), lfs: store.common_dir().join("lfs") }
    }

    /// Returns the git directory for captures.
    ///
    /// Contains every setting of any scope that affects a capture, from before any worker ran, so
    /// that git needs no file that a worker could have changed.
    pub(super) fn for_capture(host: &Host, head: Oid, extras: &Extras) -> Result<Self, Error> {
        Self::capturing(host, &host.store, head, ours(host, extras))
    }

    /// Returns the git directory for capturing a submodule, like [`Self::for_capture`].
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
        // A conversion that does not round-trip is the worker's decision and no reason to lose its
        // work.
        config.section("core", None);
        config.value("safecrlf", b"false");
        let users = FILES.map(|(setting, name)| users_file(host, store, setting, name));
        let users = users.into_iter().collect::<Result<_, _>>()?;
        let mut made = Self::new(store, config, left_out)?;
        made.files.push(("HEAD".into(), format!("{head}\n").into_bytes()));
        Ok(Self { users, filters: filters(host, store, |_| true), ..made })
    }

    fn new<'a>(store: &Store, config: Config, left_out: impl Iterator<Item = &'a [u8]>) -> Result<Self, Error> {
        let common = store.common_dir();
        let exclude = read_if_any(&common.join("info/exclude"))?.unwrap_or_default();
        let mut files = vec![
            ("config".into(), config.text),
            ("objects/info/alternates".into(), store.alternates().map_err(|e| Error::Checkout(Box::new(e)))?),
            ("info/exclude".into(), excluding(exclude, left_out)),
        ];
        for name in ["info/attributes", "shallow"] {
            if let Some(bytes) = read_if_any(&common.join(name))? {
                files.push((name.into(), bytes));
            }
        }
        files.extend(crypt_keys(&common)?);
        Ok(Self { files, users: Vec::new(), filters: Vec::new(), lfs: common.join("lfs") })
    }

    /// Returns true if there are filters for captures.
    pub(crate) fn has_filters(&self) -> bool {
        self.filters.iter().any(Filter::is_for_capture)
    }

    /// Returns true if there is a filter with this name for captures.
    pub(crate) fn has_filter(&self, name: &[u8]) -> bool {
        self.filters.iter().any(|filter| filter.name == name && filter.is_for_capture())
    }

    /// Returns the settings that make git run the filters; git-lfs stores objects in `lfs`.
    pub(crate) fn filter_settings(&self, lfs: &Path) -> Vec<u8> {
        let mut config = Config { text: Vec::new() };
        for filter in &self.filters {
            config.filter(filter.name.as_bstr(), &filter.settings);
            // A failing filter must not leave the unfiltered bytes.
            if filter.converts() {
                config.value("required", b"true");
            }
        }
        config.section("lfs", None);
        config.value("storage", lfs.as_os_str().as_encoded_bytes());
        config.text
    }

    /// Returns the repository's git-lfs folder.
    pub(crate) fn lfs(&self) -> &Path {
        &self.lfs
    }

    /// Writes the git directory to `dir`, which must not exist.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
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

/// Starts a worker's configuration: the repository's own settings and filters, and the identity.
fn worker_config(host: &Host, store: &Store) -> Config {
    let mut config = Config::new(store);
    let own = remotes::is_own;
    config.conversions(store, CONVERSIONS.into_iter().chain(["attributesFile"]), own);
    // git resolves this path from the top of the worktree, wherever the pool moved it.
    config.value("excludesFile", format!(".git/{EXCLUDES}").as_bytes());
    filters(host, store, own).iter().for_each(|filter| config.filter(filter.name.as_bstr(), &filter.settings));
    config.identity(host);
    config
}

/// Returns the keys of a repository unlocked with git-crypt: without them its filter encrypts
/// nothing.
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

/// Returns a git configuration with the committer's identity, the only settings in a worker's
/// private home.
pub(super) fn identity(host: &Host) -> Vec<u8> {
    let mut config = Config { text: Vec::new() };
    config.identity(host);
    config.text
}

/// Returns our two folders and the additional files, which are never part of a change.
fn ours<'a>(host: &'a Host, extras: &'a Extras) -> impl Iterator<Item = &'a [u8]> {
    let folders = [host.settings.inputs.as_bytes(), host.settings.outputs.as_bytes()].into_iter();
    folders.chain(extras.unknown().map(|path| path.as_bytes()))
}

/// Adds paths to an exclude file.
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

/// Returns the content of a user's file at a setting's path or at git's default.
fn users_file(host: &Host, store: &Store, setting: &str, name: &str) -> Result<Vec<u8>, Error> {
    let repo = store.local();
    let key = format!("core.{setting}");
    let configured = repo.config_snapshot().trusted_path(key.as_str()).map_err(|e| Error::Checkout(Box::new(e)))?;
    // git resolves a relative path from the current folder.
    let configured = configured.map(|path| repo.workdir().map(|top| top.join(&path)).unwrap_or(path));
    let path = configured.or_else(|| Some(host.user_files.as_ref()?.join(name)));
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
    /// Omits empty commands, which git does not run; an empty `process` disables all of them.
    fn new(name: BString, mut settings: BTreeMap<&'static str, BString>) -> Self {
        let is_off = settings.get("process").is_some_and(|command| command.is_empty());
        settings.retain(|setting, command| *setting == "required" || !(is_off || command.is_empty()));
        Self { name, settings: settings.into_iter().collect() }
    }

    /// Returns true if it affects adding files.
    fn is_for_capture(&self) -> bool {
        self.settings.iter().any(|(name, _)| matches!(*name, "clean" | "process" | "required"))
    }

    /// Returns true if it converts added files.
    fn converts(&self) -> bool {
        self.settings.iter().any(|(name, _)| matches!(*name, "clean" | "process"))
    }
}

/// Returns the filters of the scopes that `is_included` selects, without git-lfs's if that is
/// disabled.
///
/// Sections with one name form one filter; the last value of each setting counts.
fn filters(host: &Host, store: &Store, is_included: impl Fn(Source) -> bool) -> Vec<Filter> {
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    let sections = snapshot.plumbing().sections_by_name("filter").into_iter().flatten();
    let mut found: BTreeMap<BString, BTreeMap<&'static str, BString>> = BTreeMap::new();
    for section in sections.filter(|section| is_included(section.meta().source)) {
        let Some(name) = section.header().subsection_name().filter(|name| host.settings.lfs || *name != "lfs") else {
            continue;
        };
        let known = ["clean", "smudge", "process", "required"];
        let settings = known.into_iter().filter_map(|key| Some((key, section.value(key)?.as_bstr().to_owned())));
        found.entry(name.to_owned()).or_default().extend(settings);
    }
    found.into_iter().map(|(name, settings)| Filter::new(name, settings)).collect()
}
