//! What git-lfs would keep beside the repository, of files that its filter made pointers of.
//!
//! It is kept in the attempt's folder until it is known that the pointers are: the bytes are looked at for secrets as those of any
//! product are, and they go to the repository once, after all else.

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
use crate::model::digest::{Digest, Hasher};
use crate::worker::folder::Folder;
use crate::worker::workspace::Workspace;

/// The name of that place in the attempt's folder.
const HELD: &str = "large";

/// The most bytes of a pointer, and how one begins.
const POINTER: (usize, &[u8]) = (1024, b"version https://git-lfs.github.com/spec/");

/// What stands before the name in a pointer.
const NAME: &str = "oid sha256:";

/// One object of git-lfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// What its bytes hash to.
    name: String,
    /// Where the repository that it belongs to has such objects.
    to: PathBuf,
}

/// What became of what a blob points to.
pub(super) enum Kept {
    /// It points to nothing.
    Nothing,
    /// It is kept for now, and what the capture comes to names it.
    Held,
    /// There is a secret in it.
    Secret(Secret),
}

/// Looks at what a blob that filters made points to, where they left that in `filter`, and keeps it; `left` is how many bytes may still
/// be kept, and becomes less.
///
/// It ends when the time of the capture is up, or when the driver is told to end.
pub(super) fn keep(part: &Part<'_>, filter: &Folder, path: &BStr, blob: &[u8], left: &mut u64) -> Result<Kept, Error> {
    let Some(name) = named(blob) else { return Ok(Kept::Nothing) };
    let place = format!("lfs/objects/{}/{}/{name}", &name[..2], &name[2..4]);
    // What was there before the attempt is not made again.
    let Ok(file) = filter.file(&place) else { return Ok(Kept::Nothing) };
    match hold(part, file, path, name, left) {
        Err(Error::Secret(secret)) => Ok(Kept::Secret(secret)),
        held => held.map(|()| Kept::Held),
    }
}

/// Copies an object to where it is held, unless it is there. It is looked at for each path that names it: what is allowed in one may be
/// a secret in another.
fn hold(part: &Part<'_>, file: File, path: &BStr, name: String, left: &mut u64) -> Result<(), Error> {
    let dir = part.workspace.dir.join(HELD);
    let mut scan = part.host.gate.scan(&String::from_utf8_lossy(path))?;
    fs::create_dir_all(&dir).map_err(Error::at(&dir))?;
    let large = Large { name, to: part.git_dir.lfs().to_owned() };
    let all = || part.host.taking.large.lock().unwrap_or_else(PoisonError::into_inner);
    let is_held = all().contains(&large);
    let most = if is_held { part.host.max_product } else { part.host.max_product.min(*left) };
    let copied = copy(file, &dir, &large.name, most, &mut |bytes| {
        if part.host.stop.is_said() {
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

/// Takes what was kept over into the repository, where git-lfs finds it; what is there already stays.
pub fn take_over(workspace: &Workspace, large: &[Large]) -> Result<(), Error> {
    for Large { name, to } in large {
        let dir = to.join("objects").join(&name[..2]).join(&name[2..4]);
        if dir.join(name).exists() {
            continue;
        }
        let held = workspace.folder().folder(HELD).and_then(|folder| folder.file(name));
        let held = held.map_err(Error::at(&workspace.dir.join(HELD).join(name)))?;
        fs::create_dir_all(&dir).map_err(Error::at(&dir))?;
        let Some((copied, _)) = copy(held, &dir, name, u64::MAX, &mut |_| Ok(()))? else {
            return Err(Error::Io(dir.join(name), io::ErrorKind::InvalidData.into()));
        };
        persist(copied, &dir, name)?;
    }
    Ok(())
}

/// Returns the name that a pointer names.
fn named(blob: &[u8]) -> Option<String> {
    let (most, beginning) = POINTER;
    let text = std::str::from_utf8(blob).ok().filter(|_| blob.len() < most && blob.starts_with(beginning))?;
    let name = text.lines().find_map(|line| line.strip_prefix(NAME))?;
    let is_name = name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_name.then(|| name.to_owned())
}

/// Copies a file into a folder, and returns the copy and its size; none where its bytes do not hash to `name`, or are more than `most`.
fn copy(
    from: File,
    dir: &Path,
    name: &str,
    most: u64,
    see: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Option<(NamedTempFile, u64)>, Error> {
    let mut to = NamedTempFile::new_in(dir).map_err(Error::at(dir))?;
    let mut hasher = Hasher::default();
    let mut from = from.take(most.saturating_add(1));
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).map_err(Error::at(dir))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        see(&buffer[..count])?;
        to.write_all(&buffer[..count]).map_err(Error::at(dir))?;
    }
    let (digest, size): (Digest, u64) = hasher.finish();
    Ok((digest.hex() == name && size <= most).then_some((to, size)))
}

/// Gives a copy its name.
fn persist(copied: NamedTempFile, dir: &Path, name: &str) -> Result<(), Error> {
    copied.as_file().sync_all().map_err(Error::at(dir))?;
    copied.persist(dir.join(name)).map(drop).map_err(|error| Error::Io(dir.join(name), error.error))
}
