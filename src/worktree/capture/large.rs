//! Stores the contents that git-lfs keeps beside the repository, for files that a filter
//! replaced with pointers.
//!
//! The contents stay in the attempt's folder until their pointers are accepted: they are scanned
//! for secrets like any product, and stored last.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use gix::bstr::BStr;
use tempfile::NamedTempFile;

use super::Error;
use super::part::Part;
use crate::git::program;
use crate::model::credential::gate::Secret;
use crate::model::digest::Hasher;
use crate::sandbox::folder::Folder;
use crate::worktree::workspace::Workspace;

/// The name of their folder in the attempt's folder.
const HELD: &str = "large";

/// The most bytes of a pointer, and its first bytes.
const POINTER: (usize, &[u8]) = (1024, b"version https://git-lfs.github.com/spec/");

/// The prefix of the name in a pointer.
const NAME: &str = "oid sha256:";

/// An object of git-lfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Its name: the hex digits of its SHA-256.
    name: String,
    /// Its destination: the git-lfs folder of its repository.
    to: PathBuf,
}

/// The result of keeping a pointer's content.
pub(super) enum Kept {
    /// The blob is no pointer.
    Nothing,
    /// The content is held for the capture.
    Held,
    /// The content contains a secret.
    Secret(Secret),
}

/// If a filtered blob is a pointer, scans and keeps its content from `filter`. `left` is the number
/// of bytes that may still be kept, and is reduced.
///
/// Ends at the capture's time limit or on cancellation.
pub(super) fn keep(part: &Part<'_>, filter: &Folder, path: &BStr, blob: &[u8], left: &mut u64) -> Result<Kept, Error> {
    let Some(name) = name_in(blob) else { return Ok(Kept::Nothing) };
    let large = Large { name: name.to_owned(), to: part.git_dir.lfs().to_owned() };
    // Filters do not write a content again that existed before the attempt.
    let Ok(file) = filter.file(&format!("lfs/{}", large.place())) else { return Ok(Kept::Nothing) };
    match store_object(part, file, path, large, left) {
        Err(Error::Secret(secret)) => Ok(Kept::Secret(secret)),
        result => result.map(|()| Kept::Held),
    }
}

/// Copies an object into the held folder unless it is there. Scans it for each path, because a
/// secret may be allowed in one path only.
fn store_object(part: &Part<'_>, file: File, path: &BStr, large: Large, left: &mut u64) -> Result<(), Error> {
    let dir = part.workspace.dir.join(HELD);
    let mut scan = part.host.gate.scan(&String::from_utf8_lossy(path))?;
    fs::create_dir_all(&dir).map_err(Error::at(&dir))?;
    let all = || part.host.taking.large.lock().unwrap_or_else(PoisonError::into_inner);
    let is_held = all().contains(&large);
    let most = if is_held { part.host.settings.max_product } else { part.host.settings.max_product.min(*left) };
    let copied = copy(file, &dir, &large.name, most, &mut |bytes| {
        if part.host.stop.is_requested() {
            return Err(Error::git(program::Error::Stopped));
        }
        if part.host.time_left().is_zero() {
            return Err(Error::Late);
        }
        Ok(scan.push(bytes)?)
    })?;
    scan.finish()?;
    let Some((copied, size)) = copied else {
        let why = format!("what the filter of git-lfs left of {path} is not what it names, or more than may be taken");
        return Err(Error::refused(why));
    };
    if !is_held {
        *left -= size;
        persist(copied, &dir, &large.name)?;
        all().push(large);
    }
    Ok(())
}

/// Moves the held contents into the repository, where git-lfs finds them. Keeps existing ones.
pub fn take_over(workspace: &Workspace, large: &[Large]) -> Result<(), Error> {
    for object in large {
        let place = object.to.join(object.place());
        if place.exists() {
            continue;
        }
        let file = workspace.folder().folder(HELD).and_then(|folder| folder.file(&object.name));
        let file = file.map_err(Error::at(&workspace.dir.join(HELD).join(&object.name)))?;
        let dir = place.parent().unwrap_or(&object.to);
        fs::create_dir_all(dir).map_err(Error::at(dir))?;
        let Some((copied, _)) = copy(file, dir, &object.name, u64::MAX, &mut |_| Ok(()))? else {
            return Err(Error::Io(place, io::ErrorKind::InvalidData.into()));
        };
        persist(copied, dir, &object.name)?;
    }
    Ok(())
}

/// Returns the name of the object that a pointer names, or `None` if the bytes are no pointer.
fn name_in(blob: &[u8]) -> Option<&str> {
    let (most, beginning) = POINTER;
    let text = std::str::from_utf8(blob).ok().filter(|_| blob.len() < most && blob.starts_with(beginning))?;
    let name = text.lines().find_map(|line| line.strip_prefix(NAME))?;
    is_object_name(name.as_bytes()).then_some(name)
}

/// Returns true if the bytes are the hex digits of a SHA-256.
pub(in crate::worktree) fn is_object_name(name: &[u8]) -> bool {
    name.len() == 64 && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Large {
    /// Returns its path below a git-lfs folder.
    fn place(&self) -> String {
        format!("objects/{}/{}/{}", &self.name[..2], &self.name[2..4], self.name)
    }
}

/// Copies a file into a folder and returns the copy and its size, or `None` if its hash is not its
/// name or it exceeds `most` bytes.
fn copy(
    from: File,
    dir: &Path,
    name: &str,
    most: u64,
    see: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Option<(NamedTempFile, u64)>, Error> {
    let mut to = NamedTempFile::new_in(dir).map_err(Error::at(dir))?;
    let mut from = from.take(most.saturating_add(1));
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 64 << 10]);
    loop {
        let count = from.read(&mut buffer).map_err(Error::at(dir))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        see(&buffer[..count])?;
        to.write_all(&buffer[..count]).map_err(Error::at(dir))?;
    }
    let (digest, size) = hasher.finish();
    Ok((digest.hex() == name && size <= most).then_some((to, size)))
}

/// Moves a copy to its final name.
fn persist(copied: NamedTempFile, dir: &Path, name: &str) -> Result<(), Error> {
    copied.as_file().sync_all().map_err(Error::at(dir))?;
    copied.persist(dir.join(name)).map(drop).map_err(|error| Error::Io(dir.join(name), error.error))
}
