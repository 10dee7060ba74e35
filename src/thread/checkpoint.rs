//! Saves a state as the next checkpoint of a thread, or as the first of a new one.

use std::fs::File;
use std::io::{self, Read};

use super::{Error, Made, OpenThread, create};
use crate::chain::Writer;
use crate::git::store::Store;
use crate::model::entry::{Content, Event, Product, RunTie, ThreadCheckpointed};
use crate::model::name::ThreadId;

/// Saves `content`, whose objects are in the repository.
///
/// Objects, then a sync, then one swap of the ref: a failure leaves at most objects that git will prune.
pub fn checkpoint(writer: &Writer, thread: &ThreadId, content: &Content, run: Option<RunTie>) -> Result<Made, Error> {
    let event = Event::ThreadCheckpointed(ThreadCheckpointed::new(run, content.clone()));
    match OpenThread::find(writer, thread)? {
        Some(open) => open.append(event, content),
        None => create(writer, thread, event, content),
    }
}

/// Writes bytes of any number into the repository without holding them in memory.
///
/// A plain file is read where it lies; anything else is copied to a temporary file first, because git has to know the size.
pub fn save(store: &Store, mut file: File, limit: u64) -> Result<Product, SaveError> {
    let mut spooled = if file.metadata().map_err(SaveError::Read)?.is_file() {
        file
    } else {
        let mut copy = tempfile::tempfile().map_err(SaveError::Read)?;
        io::copy(&mut Read::by_ref(&mut file).take(limit.saturating_add(1)), &mut copy).map_err(SaveError::Read)?;
        copy
    };
    let bytes = spooled.metadata().map_err(SaveError::Read)?.len();
    if bytes > limit {
        return Err(SaveError::TooLarge(limit));
    }
    let (oid, sha256, size) = store.write_file(&mut spooled)?;
    Ok(Product { sha256, oid, size })
}

/// Why bytes were not saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// There are too many.
    #[error("it has more than {0} bytes, the most that is taken")]
    TooLarge(u64),
    /// They could not be read.
    #[error("it could not be read")]
    Read(#[source] io::Error),
    /// They could not be written.
    #[error(transparent)]
    Store(#[from] crate::git::store::Error),
}
