//! The object directories of a repository: its own, and those that it borrows from.

use std::path::PathBuf;

use super::store::{Error, Store};

impl Store {
    /// Returns the object directory of the repository and those of its alternates, with symbolic
    /// links resolved.
    pub fn object_dirs(&self) -> Result<Vec<PathBuf>, Error> {
        let more = self.local().objects.store_ref().alternate_db_paths();
        let more = more.map_err(|e| Error::Open(self.objects_dir(), Box::new(e)))?;
        let real = |dir: PathBuf| std::fs::canonicalize(&dir).unwrap_or(dir);
        Ok(std::iter::once(self.objects_dir()).chain(more).map(real).collect())
    }
}
