//! A temporary repository, for work that must not touch the user's or that needs none.

use std::fs;
use std::io;
use std::path::Path;

use super::program::{self, Git};
use super::store::{self, Store};
use super::temporary::Temporary;

/// A bare repository in a temporary folder. Deleted when dropped.
pub struct ScratchRepo {
    store: Store,
    folder: Temporary,
}

impl ScratchRepo {
    /// Creates one with objects named by `sha1` or `sha256`.
    pub fn new(object_format: &str) -> Result<Self, Error> {
        let folder = Temporary::new().map_err(Error::Folder)?;
        let git_dir = folder.path().canonicalize().map_err(Error::Folder)?;
        Git::new(&git_dir)
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            .args(["init", "--quiet", "--bare", "--template=", &format!("--object-format={object_format}")])
            .run()?;
        fs::create_dir(git_dir.join("info")).map_err(Error::Folder)?;
        Ok(Self { store: Store::open(&git_dir)?.with_durability(store::Durability::Relaxed), folder })
    }

    /// Sets the objects of another repository as alternates.
    pub fn borrow_objects(&mut self, from: &Store) -> Result<(), Error> {
        self.borrow_objects_of(&[from])
    }

    /// Sets the objects of other repositories as alternates.
    pub fn borrow_objects_of(&mut self, from: &[&Store]) -> Result<(), Error> {
        let lines = from.iter().map(|store| store.alternates()).collect::<Result<Vec<_>, _>>()?.concat();
        fs::write(self.folder.path().join("objects/info/alternates"), lines).map_err(Error::Folder)?;
        self.reopen()
    }

    /// Marks the repository as a partial clone, so that missing blobs are expected. Nothing is
    /// fetched: its remote has no URL.
    pub fn partial_if(mut self, is_partial: bool) -> Result<Self, Error> {
        if is_partial {
            self.store.git().args(["config", "remote.filtered.promisor", "true"]).run()?;
            self.reopen()?;
        }
        Ok(self)
    }

    /// Returns the repository.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns its git directory.
    pub(super) fn dir(&self) -> &Path {
        self.folder.path()
    }

    fn reopen(&mut self) -> Result<(), Error> {
        self.store = Store::open(&self.store.git_dir())?.with_durability(store::Durability::Relaxed);
        Ok(())
    }
}

errors! {
    /// Why a temporary repository was not created.
    #[derive(Debug, thiserror::Error)] pub enum Error = "scratch";
    Folder(#[source] io::Error): "cannot create a temporary folder";
    Git(#[from] program::Error): "cannot create a temporary repository";
    Setting(String): "cannot pass on the setting `{0}`";
    Store(#[from] store::Error): "cannot open a temporary repository";
}
