//! Stores bytes from people and agents as a blob.

use std::fs::File;
use std::io::{self, Read, Seek as _};

use super::store::{self, KeepGuard, Store};
use crate::model::entry::Product;

/// Writes up to `limit` bytes into the repository without holding them in memory.
///
/// A regular file is read in place; other input is copied to a temporary file first, because git
/// needs the size.
///
/// Keeps the blob until a ref reaches it. `check` sees the file first and may refuse it.
pub fn save<E: From<Error>>(
    store: &Store,
    mut file: File,
    limit: u64,
    check: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(Product, KeepGuard), E> {
    let mut spooled = if file.metadata().map_err(Error::Read)?.is_file() {
        file
    } else {
        let mut copy = tempfile::tempfile().map_err(Error::Read)?;
        io::copy(&mut Read::by_ref(&mut file).take(limit.saturating_add(1)), &mut copy).map_err(Error::Read)?;
        copy
    };
    let bytes = spooled.metadata().map_err(Error::Read)?.len();
    if bytes > limit {
        return Err(Error::TooLarge(limit).into());
    }
    spooled.rewind().map_err(Error::Read)?;
    check(&mut spooled)?;
    let mut batch = store.batch();
    let product = batch.write_file(&mut spooled).map_err(Error::from)?;
    Ok((product, batch.keep().map_err(Error::from)?))
}

errors! {
    /// Why bytes were not saved.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    TooLarge(u64) "too-large": "it has more than {0} bytes, the limit";
    Read(#[source] io::Error) "io": "it could not be read";
    #[from] Store(store::Error);
}
