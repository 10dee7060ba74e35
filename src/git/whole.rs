//! Objects that are read whole, none larger than its reader has room for.
//!
//! An object of a few bytes in a pack can stand for gigabytes, and so can the ones that it is stored as a difference from. What
//! gix puts together in our own memory is bounded by a limit on its allocations; what is beyond that is left to git, whose
//! memory is another process's and bounded as well, and comes back in a size that was told first.

use std::fs;
use std::io;
use std::sync::{Mutex, PoisonError};

use gix::objs::Kind;

use super::program::{self, Git};
use crate::model::digest::Oid;

/// The most bytes that putting one object together takes in our own memory, those that it is a difference from included.
const HERE: u64 = 16 << 20;

/// The setting that bounds gix.
pub(super) fn setting() -> String {
    format!("gitoxide.objects.allocLimit={HERE}")
}

/// Held while git puts an object together for us: one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The longest first line of what git says of an object.
const LONGEST_LINE: usize = 256;

/// An object.
pub struct Whole {
    /// What it is.
    pub kind: Kind,
    /// Its bytes, and not more room than they take.
    pub bytes: Vec<u8>,
    /// The bytes that it takes in the object database, those that it is a difference from aside.
    pub stored: u64,
}

/// Reads an object that has at most as many bytes as `most` says of its kind; none where it is not here. Nothing is fetched.
pub fn read(repo: &gix::Repository, oid: Oid, most: impl Fn(Kind) -> u64) -> Result<Option<Whole>, Error> {
    if oid.0 == gix::ObjectId::empty_tree(repo.object_hash()) {
        return Ok(Some(Whole { kind: Kind::Tree, bytes: Vec::new(), stored: 0 }));
    }
    if is_foreign(repo, oid) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // What is too large for our memory fails here, before it is inflated.
    let found = if repo.objects.num_objects_in_memory() > 0 {
        // What is still to be written takes nothing yet.
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
    // An object that was put together from differences leaves the room of all of them.
    bytes.shrink_to_fit();
    Ok(Some(Whole { kind, stored: packed.unwrap_or_else(|| loose(repo, oid)), bytes }))
}

/// Returns the kind and the size of an object; none where it is not here, as none of another object format is.
pub fn header(repo: &gix::Repository, oid: Oid) -> Result<Option<(Kind, u64)>, Error> {
    if is_foreign(repo, oid) {
        return Ok(None);
    }
    let found = repo.try_find_header(oid.0).map_err(|error| Error::Find(oid, Box::new(error)))?;
    Ok(found.map(|header| (header.kind(), header.size())))
}

/// Returns whether a name is one of another object format, which gix takes for a mistake of who asks. Entries name what they like.
fn is_foreign(repo: &gix::Repository, oid: Oid) -> bool {
    oid.0.kind() != repo.object_hash()
}

/// Returns how many bytes a loose object takes.
fn loose(repo: &gix::Repository, oid: Oid) -> u64 {
    let hex = oid.to_string();
    let path = repo.objects.store_ref().path().join(&hex[..2]).join(&hex[2..]);
    // One in a borrowed database takes as good as nothing where it is not worth the trouble to look.
    fs::metadata(path).map_or(0, |meta| meta.len())
}

/// Has git put an object together.
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
        // The line end that git adds is the last byte.
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

/// Reads `<kind> <size> <size in the object database>`.
fn head(line: &[u8]) -> Option<(Kind, u64, u64)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let kind = Kind::from_bytes(words.next()?.as_bytes()).ok()?;
    let mut number = || words.next()?.parse().ok();
    Some((kind, number()?, number()?))
}

/// Why an object cannot be read whole.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the {kind} {oid} has {size} bytes; at most {most} are read")]
    TooLarge { oid: Oid, kind: Kind, size: u64, most: u64 },
    #[error("object {0} cannot be read")]
    Find(Oid, #[source] Box<gix::Error>),
    #[error("object {0} is damaged: {1}")]
    Damaged(Oid, String),
    #[error("object {0} cannot be put together")]
    Git(Oid, #[source] Box<program::Error>),
}
