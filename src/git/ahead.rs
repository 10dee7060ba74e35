//! Blobs that git is about to add, put into one pack of its object directory before it does.
//!
//! git makes a file of each object that it does not find, which costs more than all else where there are many. It still reads and
//! names every file itself: what it finds under that name it need not write, and whatever else is here does no harm.

use std::fs;
use std::io;
use std::path::Path;

use gix::objs::Kind;

use super::pack::PackWriter;
use super::store::{Store, object_oid};

/// Writes blobs into one pack of an object directory that goes away again; nothing is forced to disk.
///
/// `store` says how objects are named there. Bytes that cannot be named are left to git.
pub fn write(objects: &Path, store: &Store, blobs: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = objects.join("pack");
    fs::create_dir_all(&folder)?;
    let mut pack = PackWriter::new(&folder, store.hash_kind())?;
    for bytes in blobs {
        if let Ok(oid) = object_oid(store.hash_kind(), Kind::Blob, &bytes) {
            pack.add(oid.0, Kind::Blob, &bytes)?;
        }
    }
    let finished = pack.finish()?;
    let stem = folder.join(format!("pack-{}", finished.checksum));
    finished.pack.persist(stem.with_extension("pack")).map_err(|error| error.error)?;
    // The index is what makes a pack be seen.
    finished.index.persist(stem.with_extension("idx")).map_err(|error| error.error)?;
    Ok(())
}
