//! Streams blobs to a writer after checking their hashes.

use std::io::{self, Write};

use super::bounded_read;
use super::store::{self, Store, object_oid};
use crate::model::digest::{Digest, Oid};

/// Blobs above this size are read twice instead of held in memory.
const HELD: u64 = 4 << 20;

/// The most bytes of a blob that is returned in memory, such as a patch or a document.
const MOST: u64 = 512 << 20;

/// Copies a blob to `out` after checking its bytes against its object id and every digest in
/// `recorded`.
///
/// Small blobs are hashed and written from memory. Large blobs are read and hashed twice: nothing
/// is written before the first pass matches, and a second pass that differs is an error.
pub fn copy(store: &Store, oid: Oid, recorded: &[Digest], out: &mut dyn Write) -> Result<(), Error> {
    let size = size(store, oid)?;
    if size <= HELD {
        return out.write_all(&read(store, oid, recorded)?).map_err(|e| store::Error::Write(e).into());
    }
    stream(store, oid, size, recorded, &mut io::sink())?;
    stream(store, oid, size, recorded, out)
}

/// Reads a blob into memory, checked like [`copy`]. A blob over 512 MiB is an error.
pub fn read(store: &Store, oid: Oid, recorded: &[Digest]) -> Result<Vec<u8>, Error> {
    let bytes = store.read_blob_of(oid, MOST)?;
    let actual = object_oid(store.hash_kind(), gix::objs::Kind::Blob, &bytes).ok();
    judge(oid, actual, recorded, Digest::compute(&bytes))?;
    Ok(bytes)
}

fn stream(store: &Store, oid: Oid, size: u64, recorded: &[Digest], out: &mut dyn Write) -> Result<(), Error> {
    let mut hasher = gix::hash::hasher(store.hash_kind());
    hasher.update(format!("blob {size}\0").as_bytes());
    let mut tee = Tee { hasher, out };
    let (digest, _) = store.copy_blob(oid, &mut tee)?;
    judge(oid, tee.hasher.try_finalize().ok().map(Oid), recorded, digest)
}

fn judge(oid: Oid, actual: Option<Oid>, recorded: &[Digest], found: Digest) -> Result<(), Error> {
    if actual != Some(oid) {
        return Err(Error::Damaged(oid));
    }
    match recorded.iter().find(|recorded| **recorded != found) {
        Some(recorded) => Err(Error::Altered { oid, recorded: *recorded, found }),
        None => Ok(()),
    }
}

fn size(store: &Store, oid: Oid) -> Result<u64, store::Error> {
    let (_, size) =
        bounded_read::header(&store.local(), oid).map_err(store::Error::from)?.ok_or(store::Error::Missing(oid))?;
    Ok(size)
}

/// Forwards bytes to a writer and computes their object id.
struct Tee<'a> {
    hasher: gix::hash::Hasher,
    out: &'a mut dyn Write,
}

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

errors! {
    /// Why a blob was not copied.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Damaged(Oid) "altered" 3: "object {0} is damaged: its bytes do not hash to its id";
    Altered { oid: Oid, recorded: Digest, found: Digest } "altered" 3:
        "object {oid} hashes to {}, not to {} that was recorded" [found.short(), recorded.short()];
    #[from] Store(store::Error);
}
