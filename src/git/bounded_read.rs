//! Reads objects into memory within a size limit.
//!
//! A few bytes in a pack can expand to gigabytes, and so can their delta bases. A limit on
//! allocations bounds what gix reconstructs in our memory. Larger objects are reconstructed by git
//! in a limited process of its own, and their size is known before the bytes arrive.

use std::fs;
use std::io;
use std::sync::{Mutex, PoisonError};

use gix::objs::Kind;

use super::program::{self, Git};
use crate::model::digest::Oid;

/// The most bytes for reconstructing one object in our memory, delta bases included.
const HERE: u64 = 16 << 20;

/// The setting that limits gix.
pub(super) fn setting() -> String {
    format!("gitoxide.objects.allocLimit={HERE}")
}

/// Held while git reconstructs an object: one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The most bytes of git's line about an object.
const LONGEST_LINE: usize = 256;

/// An object in memory.
pub struct Whole {
    /// Its kind.
    pub kind: Kind,
    /// Its bytes, without spare capacity.
    pub bytes: Vec<u8>,
    /// Its size in the object database in bytes, without delta bases.
    pub stored: u64,
}

/// Reads an object of at most `most(kind)` bytes, or returns `None` if it is missing. Fetches
/// nothing.
pub fn read(repo: &gix::Repository, oid: Oid, most: impl Fn(Kind) -> u64) -> Result<Option<Whole>, Error> {
    if oid.0 == gix::ObjectId::empty_tree(repo.object_hash()) {
        return Ok(Some(Whole { kind: Kind::Tree, bytes: Vec::new(), stored: 0 }));
    }
    if is_foreign(repo, oid) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // An object too large for our memory fails before it is inflated.
    let found = if repo.objects.num_objects_in_memory() > 0 {
        // An unwritten object has no stored size yet.
        gix::objs::Find::try_find(&repo.objects, &oid.0, &mut bytes).map(|found| Some((found?.kind, Some(0))))
    } else {
        let found = gix::odb::pack::Find::try_find(&*repo.objects, &oid.0, &mut bytes);
        found.map(|found| found.map(|(object, at)| (object.kind, at.map(|at| at.entry_size as u64))))
    };
    let (kind, packed) = match found {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(error) if error.is_resource_exhausted() => return by_git(repo, oid, &most).map(Some),
        Err(error) => return Err(Error::Find(oid, Box::new(error))),
    };
    let size = bytes.len() as u64;
    if size > most(kind) {
        return Err(Error::TooLarge { oid, kind, size, most: most(kind) });
    }
    // Reconstruction leaves the capacity of all deltas.
    bytes.shrink_to_fit();
    Ok(Some(Whole { kind, stored: packed.unwrap_or_else(|| loose(repo, oid)), bytes }))
}

/// Returns the kind and size of an object, or `None` if it is missing or of another object format.
pub fn header(repo: &gix::Repository, oid: Oid) -> Result<Option<(Kind, u64)>, Error> {
    if is_foreign(repo, oid) {
        return Ok(None);
    }
    let found = repo.try_find_header(oid.0).map_err(|error| Error::Find(oid, Box::new(error)))?;
    Ok(found.map(|header| (header.kind(), header.size())))
}

/// Fails if an object has more than `most` bytes. A missing one has none.
pub fn within(repo: &gix::Repository, oid: Oid, most: u64) -> Result<(), Error> {
    match header(repo, oid)? {
        Some((kind, size)) if size > most => Err(Error::TooLarge { oid, kind, size, most }),
        _ => Ok(()),
    }
}

/// Returns true for an id of another object format, which gix would treat as a caller's error.
/// Entries may contain any id.
fn is_foreign(repo: &gix::Repository, oid: Oid) -> bool {
    oid.0.kind() != repo.object_hash()
}

/// Returns the stored size of a loose object in bytes.
fn loose(repo: &gix::Repository, oid: Oid) -> u64 {
    let hex = oid.to_string();
    let path = repo.objects.store_ref().path().join(&hex[..2]).join(&hex[2..]);
    // An object in an alternate counts as 0: it is not worth looking for.
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Lets git reconstruct an object.
fn by_git(repo: &gix::Repository, oid: Oid, most: &dyn Fn(Kind) -> u64) -> Result<Whole, Error> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut line = Vec::new();
    let mut found: Option<(Kind, u64, u64)> = None;
    let mut bytes = Vec::new();
    let mut refused = None;
    let call = Git::new(repo.git_dir())
        .frugal()
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .args(["cat-file", "--batch=%(objecttype) %(objectsize) %(objectsize:disk)"])
        .input(format!("{oid}\n"));
    let read = call.stream(&mut |chunk| {
        let mut chunk = chunk;
        if found.is_none() {
            let end = chunk.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            let Some(end) = end.filter(|_| line.len() <= LONGEST_LINE) else {
                return if line.len() > LONGEST_LINE { Err(io::Error::other("git says too much")) } else { Ok(()) };
            };
            let (kind, size, stored) = head(&line).ok_or_else(|| io::Error::other("git does not know it"))?;
            if size > most(kind) {
                refused = Some(Error::TooLarge { oid, kind, size, most: most(kind) });
                return Err(io::Error::other("it is too large"));
            }
            let room = usize::try_from(size).ok().and_then(|size| size.checked_add(1));
            let room = room.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
            bytes.try_reserve_exact(room).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            found = Some((kind, size, stored));
            chunk = &chunk[end + 1..];
        }
        // The last byte is the newline that git adds.
        let left = bytes.capacity().saturating_sub(bytes.len()).min(chunk.len());
        bytes.extend_from_slice(&chunk[..left]);
        Ok(())
    });
    if let Some(refused) = refused {
        return Err(refused);
    }
    read.map_err(|error| Error::Git(oid, Box::new(error)))?;
    let Some((kind, size, stored)) = found else {
        return Err(Error::Damaged(oid, "git does not know it".into()));
    };
    if bytes.len() as u64 != size + 1 {
        return Err(Error::Damaged(oid, "it has not as many bytes as it says".into()));
    }
    bytes.pop();
    bytes.shrink_to_fit();
    Ok(Whole { kind, bytes, stored })
}

/// Parses `<kind> <size> <stored size>`.
fn head(line: &[u8]) -> Option<(Kind, u64, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let kind = Kind::from_bytes(words.next()?.as_bytes()).ok()?;
    let mut number = || words.next()?.parse().ok();
    Some((kind, number()?, number()?))
}

errors! {
    /// Why an object cannot be read into memory.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    TooLarge { oid: Oid, kind: Kind, size: u64, most: u64 }:
        "the {kind} {oid} has {size} bytes; at most {most} are read";
    Find(Oid, #[source] Box<gix::Error>): "object {0} cannot be read";
    Damaged(Oid, String): "object {0} is damaged: {1}";
    Git(Oid, #[source] Box<program::Error>): "cannot reconstruct object {0}";
}
