//! Submodules in worktrees, from what is on this machine: nothing is ever fetched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::bstr::{BString, ByteSlice as _};

use super::Error;
use super::base::Checkout;
use super::git_dir::GitDir;
use crate::git::program;
use crate::git::store::Store;
use crate::model::digest::Oid;
use crate::model::name::FilePath;
use crate::worker::host::Host;

/// A submodule at the commit that the base names.
pub(in crate::worker) struct Submodule {
    pub(in crate::worker) path: BString,
    /// Its own repository.
    pub(in crate::worker) store: Store,
    /// The git directory that we capture it with.
    pub(in crate::worker) capture: Arc<GitDir>,
    checkout: Checkout,
}

impl Submodule {
    /// Finds the submodules of a commit; one whose commit is not here is an error that names it.
    pub(super) fn find(host: &Host, commit: Oid, links: &[(BString, Oid)]) -> Result<Vec<Self>, Error> {
        if !host.submodules || links.is_empty() {
            return Ok(Vec::new());
        }
        let names = names(host, commit)?;
        let find = |(path, at): &(BString, Oid)| {
            let missing = || Error::Submodule(path.to_string(), *at);
            let name = names.iter().find(|(_, known)| known == path).map(|(name, _)| name.as_str());
            let mut found = git_dirs(host, name, path).into_iter().filter_map(|dir| Store::open(&dir).ok());
            let store = found.find(|store| store.contains(*at)).ok_or_else(missing)?;
            let checkout = Checkout::read(&store, *at, host.lfs).map_err(|_| missing())?;
            let capture = Arc::new(GitDir::for_submodule(host, &store, *at)?);
            Ok(Self { path: path.clone(), store, capture, checkout })
        };
        links.iter().map(find).collect()
    }

    /// Returns its files.
    pub(in crate::worker) fn index(&self) -> &gix::index::State {
        &self.checkout.index
    }

    /// Returns the tree that they are of.
    pub(in crate::worker) fn tree(&self) -> Oid {
        self.checkout.tree
    }

    /// Checks it out in a worktree, where its folder is there and empty.
    pub(super) fn put(&self, tree: &Path) -> Result<(), Error> {
        let mut index = self.checkout.index.clone();
        self.checkout.write(&self.store, &tree.join(self.path.to_path_lossy()), &mut index)
    }
}

/// Where a submodule's repository may be, the usual place first. A name that leads elsewhere is the base's doing, and no place.
fn git_dirs(host: &Host, name: Option<&str>, path: &BString) -> Vec<PathBuf> {
    let plain = |text: &str| FilePath::parse(text).is_ok();
    let modules = name.filter(|name| plain(name)).map(|name| host.store.common_dir().join("modules").join(name));
    let own = host.store.work_dir().filter(|_| path.to_str().is_ok_and(plain));
    let own = own.map(|dir| dir.join(path.to_path_lossy()).join(".git")).filter(|dir| dir.is_dir());
    modules.into_iter().chain(own).collect()
}

/// Returns names and paths, as the commit says.
fn names(host: &Host, commit: Oid) -> Result<Vec<(String, BString)>, Error> {
    let blob = format!("--blob={commit}:.gitmodules");
    let asked = host.store.git().args(["config", "-z", &blob, "--get-regexp", "^submodule\\..*\\.path$"]).run();
    let said = match asked {
        Ok(said) => said,
        // There is no such file, or nothing in it.
        Err(program::Error::Failed { .. }) => Vec::new(),
        Err(error) => return Err(Error::Modules(Box::new(error))),
    };
    let lines = said.split(|byte| *byte == 0).filter_map(|line| line.split_once_str("\n"));
    let named = lines.filter_map(|(key, path)| {
        let name = key.to_str().ok()?.strip_prefix("submodule.")?.strip_suffix(".path")?;
        Some((name.to_owned(), BString::from(path)))
    });
    Ok(named.collect())
}
