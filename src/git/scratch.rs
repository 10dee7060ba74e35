//! A throw-away repository, for what must not touch the user's or where there is none.

use std::fs;
use std::io;

use super::program::{self, Git};
use super::store::{self, Store};
use super::temporary::Temporary;

/// A bare repository in a temporary folder, removed when dropped.
pub struct Scratch {
    store: Store,
    folder: Temporary,
}

impl Scratch {
    /// Makes one whose objects are named by `sha1` or `sha256`.
    pub fn new(object_format: &str) -> Result<Self, Error> {
        let folder = Temporary::new().map_err(Error::Folder)?;
        let git_dir = folder.path().canonicalize().map_err(Error::Folder)?;
        Git::new(&git_dir)
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            .args(["init", "--quiet", "--bare", "--template=", &format!("--object-format={object_format}")])
            .run()?;
        Ok(Self { store: Store::open(&git_dir)?.with_durability(store::Durability::Relaxed), folder })
    }

    /// Lets it read the objects of another repository.
    pub fn borrow_objects(&mut self, from: &Store) -> Result<(), Error> {
        let line = [from.objects_dir().as_os_str().as_encoded_bytes(), b"\n"].concat();
        fs::write(self.folder.path().join("objects/info/alternates"), line).map_err(Error::Folder)?;
        self.reopen()
    }

    /// Returns the repository.
    pub fn store(&self) -> &Store {
        &self.store
    }

    fn reopen(&mut self) -> Result<(), Error> {
        self.store = Store::open(&self.store.git_dir())?.with_durability(store::Durability::Relaxed);
        Ok(())
    }
}

/// Why there is no throw-away repository.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("a temporary folder could not be made")]
    Folder(#[source] io::Error),
    #[error("a temporary repository could not be made")]
    Git(#[from] program::Error),
    #[error("the setting `{0}` cannot be handed on")]
    Setting(String),
    #[error("a temporary repository could not be opened")]
    Store(#[from] store::Error),
}
