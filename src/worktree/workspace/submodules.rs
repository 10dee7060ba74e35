//! Checks out submodules in worktrees from local repositories. Never fetches.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::entry::Mode;

use super::base::{Checkout, bytes_of};
use super::git_dir::GitDir;
use super::{Error, annex};
use crate::git::program;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::name::FilePath;
use crate::worktree::host::Host;

/// A submodule at its commit in the base.
pub(crate) struct Submodule {
    pub(crate) path: BString,
    /// Its own repository.
    pub(crate) store: Store,
    /// The git directory for capturing it.
    pub(crate) capture: Arc<GitDir>,
    /// The worker's git directory in it.
    worker: GitDir,
    checkout: Checkout,
}

impl Submodule {
    /// Finds the submodules of a commit. Fails if the commit of one is not here.
    pub(super) fn find(host: &Host, commit: Oid, links: &[(BString, Oid)]) -> Result<Vec<Self>, Error> {
        if !host.settings.submodules || links.is_empty() {
            return Ok(Vec::new());
        }
        let names = names(host, commit)?;
        links
            .iter()
            .map(|(path, at)| {
                let name = names.iter().find(|(_, known)| known == path).map(|(name, _)| name.as_str());
                let mut found = git_dirs(host, name, path).into_iter().filter_map(|dir| Store::open(&dir).ok());
                let store =
                    found.find(|store| store.contains(*at)).ok_or_else(|| Error::Submodule(path.to_string(), *at))?;
                annex::refuse(&store, *at)?;
                let checkout = Checkout::read(&store, *at, host.settings.lfs)
                    .map_err(|_| Error::Submodule(path.to_string(), *at))?;
                let capture = Arc::new(GitDir::for_submodule(host, &store, *at)?);
                let worker = GitDir::for_worker_in_submodule(host, &store, *at)?;
                Ok(Self { path: path.clone(), store, capture, worker, checkout })
            })
            .collect()
    }

    /// Returns its index.
    pub(crate) fn index(&self) -> &Arc<gix::index::State> {
        &self.checkout.index
    }

    /// Returns its tree.
    pub(crate) fn tree(&self) -> Oid {
        self.checkout.tree
    }

    /// Returns the paths, from the top of the worktree, of its own submodules. They are never
    /// checked out.
    pub(crate) fn nested(&self) -> impl Iterator<Item = BString> {
        let index = self.index();
        let links = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        links.map(|entry| BString::from([&self.path[..], b"/", entry.path(index)].concat()))
    }

    /// Checks it out into its existing empty folder, with a private git directory for the worker.
    /// Returns the index with the status of its files.
    pub(super) fn put(&self, tree: &Path) -> Result<gix::index::State, Error> {
        let (mut index, dir) = (gix::index::State::clone(&self.checkout.index), tree.join(self.path.to_path_lossy()));
        self.checkout.write(&self.store, &dir, &mut index)?;
        self.write_git(tree, &index)?;
        Ok(index)
    }

    /// Writes the worker's private git directory into its folder.
    pub(super) fn write_git(&self, tree: &Path, index: &gix::index::State) -> Result<(), Error> {
        let git_dir = tree.join(self.path.to_path_lossy()).join(".git");
        self.worker.write(&git_dir).map_err(Error::at(&git_dir))?;
        let file = git_dir.join("index");
        fs::write(&file, bytes_of(index)?).map_err(Error::at(&file))
    }
}

/// Creates the folder of a submodule that is not checked out, with an empty repository, so that git
/// does not discover another one there.
pub(super) fn put_empty(host: &Host, tree: &Path, path: &BString) -> Result<(), Error> {
    let dir = tree.join(path.to_path_lossy());
    fs::create_dir_all(&dir).map_err(Error::at(&dir))?;
    let git_dir = dir.join(".git");
    GitDir::empty(&host.store).write(&git_dir).map_err(Error::at(&git_dir))
}

/// Returns the object directories of the repository's submodules.
pub fn object_dirs(store: &Store) -> Vec<PathBuf> {
    let mut repositories = Vec::new();
    let mut folders = vec![store.common_dir().join("modules")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
        for dir in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()) {
            // A submodule's name may contain slashes.
            let into = if dir.join("HEAD").exists() { &mut repositories } else { &mut folders };
            into.push(dir);
        }
    }
    let index = store.local().index_or_empty().ok();
    let links = index.iter().flat_map(|index| {
        let links = index.entries().iter().filter(|entry| entry.mode == Mode::COMMIT);
        links.map(|entry| entry.path(index).to_owned()).collect::<Vec<_>>()
    });
    repositories.extend(links.filter_map(|path| own_git_dir(store, &path)));
    let dirs = repositories.iter().filter_map(|dir| Store::open(dir).ok()?.object_dirs().ok());
    dirs.flatten().collect()
}

/// Returns candidates for a submodule's git directory, the usual place first. Skips a name that
/// leads elsewhere, which the base controls.
fn git_dirs(host: &Host, name: Option<&str>, path: &BString) -> Vec<PathBuf> {
    let modules = name
        .filter(|name| FilePath::parse(name).is_ok())
        .map(|name| host.store.common_dir().join("modules").join(name));
    modules.into_iter().chain(own_git_dir(&host.store, path)).collect()
}

/// Returns the git directory in a submodule's own folder, as old versions of git create it.
fn own_git_dir(store: &Store, path: &BString) -> Option<PathBuf> {
    let dir = store.work_dir().filter(|_| path.to_str().is_ok_and(|path| FilePath::parse(path).is_ok()))?;
    Some(dir.join(path.to_path_lossy()).join(".git")).filter(|dir| dir.is_dir())
}

/// Returns the names and paths in the commit's `.gitmodules`.
fn names(host: &Host, commit: Oid) -> Result<Vec<(String, BString)>, Error> {
    let blob = format!("--blob={commit}:.gitmodules");
    let result = host.store.git().args(["config", "-z", &blob, "--get-regexp", "^submodule\\..*\\.path$"]).run();
    let output = match result {
        Ok(output) => output,
        // There is no such file, or it is empty.
        Err(program::Error::Failed { .. }) => Vec::new(),
        Err(error) => return Err(Error::Modules(Box::new(error))),
    };
    let lines = output.split(|byte| *byte == 0).filter_map(|line| line.split_once_str("\n"));
    let pairs = lines.filter_map(|(key, path)| {
        let name = key.to_str().ok()?.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), BString::from(path)))
    });
    Ok(pairs.collect())
}
