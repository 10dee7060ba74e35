//! Stores the contents that git-lfs or git-annex keeps beside the repository, for files that a
//! filter replaced with pointers.
//!
//! The contents stay in the attempt's folder until their pointers are accepted: they are scanned
//! for secrets like any product, and stored last.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use gix::bstr::{BStr, ByteSlice as _};
use md5::{Digest as _, Md5};
use tempfile::NamedTempFile;

use super::Error;
use super::part::Part;
use crate::git::program::{self, Git};
use crate::model::credential::gate::Secret;
use crate::model::digest::{Digest, Hasher, hex};
use crate::sandbox::folder::Folder;
use crate::worktree::workspace::{Workspace, annex};

/// The name of their folder in the attempt's folder.
const HELD: &str = "large";

/// The most bytes of a pointer, and its first bytes.
const POINTER: (usize, &[u8]) = (1024, b"version https://git-lfs.github.com/spec/");

/// The prefix of the name in a pointer.
const NAME: &str = "oid sha256:";

/// An object of git-lfs or a content of git-annex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Its name, which contains its hash.
    name: Name,
    /// Its destination: the git-lfs folder or the git directory of its repository.
    to: PathBuf,
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// The SHA-256 of an object of git-lfs.
    Lfs(String),
    /// The key of a content of git-annex.
    Annex(String),
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
    let Some(name) = Name::of(blob) else { return Ok(Kept::Nothing) };
    let place = name.place();
    let Some(place) = place.to_str() else { return Ok(Kept::Nothing) };
    // Filters do not write a content again that existed before the attempt.
    let Ok(file) = filter.file(place) else { return Ok(Kept::Nothing) };
    match store_object(part, file, path, name, left) {
        Err(Error::Secret(secret)) => Ok(Kept::Secret(secret)),
        held => held.map(|()| Kept::Held),
    }
}

/// Copies an object into the held folder unless it is there. Scans it for each path, because a
/// secret may be allowed in one path only.
fn store_object(part: &Part<'_>, file: File, path: &BStr, name: Name, left: &mut u64) -> Result<(), Error> {
    let dir = part.workspace.dir.join(HELD);
    let mut scan = part.host.gate.scan(&String::from_utf8_lossy(path))?;
    fs::create_dir_all(&dir).map_err(Error::at(&dir))?;
    let Some(hash) = Hash::of(&name) else {
        let why =
            format!("git-annex keeps {path} under a key that holds neither SHA-256 nor MD5, so it cannot be checked");
        return Err(Error::refused(why));
    };
    let to = match name {
        Name::Lfs(_) => part.git_dir.lfs().to_owned(),
        Name::Annex(_) => part.store.common_dir(),
    };
    let large = Large { name, to };
    let all = || part.host.taking.large.lock().unwrap_or_else(PoisonError::into_inner);
    let is_held = all().contains(&large);
    let most = if is_held { part.host.settings.max_product } else { part.host.settings.max_product.min(*left) };
    let copied = copy(file, &dir, hash, most, &mut |bytes| {
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
        let why = format!(
            "what the filter of {} left of {path} is not what it names, or more than may be taken",
            large.name.program()
        );
        return Err(Error::refused(why));
    };
    if !is_held {
        *left -= size;
        persist(copied, &dir, large.name.as_str())?;
        all().push(large);
    }
    Ok(())
}

/// Moves the held contents into the repository, where git-lfs or git-annex finds them. Keeps
/// existing ones.
pub fn take_over(workspace: &Workspace, large: &[Large]) -> Result<(), Error> {
    for Large { name, to } in large {
        let place = to.join(match name {
            Name::Lfs(_) => name.place().strip_prefix("lfs").map(Path::to_owned).unwrap_or_default(),
            Name::Annex(_) => name.place(),
        });
        if place.exists() {
            continue;
        }
        let held = workspace.folder().folder(HELD).and_then(|folder| folder.file(name.as_str()));
        let held = held.map_err(Error::at(&workspace.dir.join(HELD).join(name.as_str())))?;
        let dir = match name {
            Name::Lfs(_) => place.parent().unwrap_or(to).to_owned(),
            Name::Annex(_) => to.join("annex"),
        };
        fs::create_dir_all(&dir).map_err(Error::at(&dir))?;
        let hash = Hash::of(name);
        let copied = hash.map(|hash| copy(held, &dir, hash, u64::MAX, &mut |_| Ok(()))).transpose()?.flatten();
        let Some((copied, _)) = copied else {
            return Err(Error::Io(place, io::ErrorKind::InvalidData.into()));
        };
        match name {
            Name::Lfs(name) => persist(copied, &dir, name)?,
            Name::Annex(key) => annex(to, key, &copied)?,
        }
    }
    Ok(())
}

/// Passes a content to git-annex, which moves the file and records its presence.
fn annex(git_dir: &Path, key: &str, copied: &NamedTempFile) -> Result<(), Error> {
    copied.as_file().sync_all().map_err(Error::at(copied.path()))?;
    let call = Git::new(git_dir).in_dir(git_dir).args(["annex", "setkey", key]).arg(copied.path());
    call.run().map(drop).map_err(Error::git)
}

impl Name {
    /// Returns the name of the object that a pointer names, or `None` if the bytes are no pointer.
    fn of(blob: &[u8]) -> Option<Self> {
        if let Some(key) = annex::key(blob) {
            return Some(Self::Annex(key.to_str().ok()?.to_owned()));
        }
        let (most, beginning) = POINTER;
        let text = std::str::from_utf8(blob).ok().filter(|_| blob.len() < most && blob.starts_with(beginning))?;
        let name = text.lines().find_map(|line| line.strip_prefix(NAME))?;
        let is_name = name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_name.then(|| Self::Lfs(name.to_owned()))
    }

    fn as_str(&self) -> &str {
        let (Self::Lfs(name) | Self::Annex(name)) = self;
        name
    }

    /// Returns its path below a git directory.
    fn place(&self) -> PathBuf {
        match self {
            Self::Lfs(name) => format!("lfs/objects/{}/{}/{name}", &name[..2], &name[2..4]).into(),
            Self::Annex(key) => Path::new("annex/objects").join(annex::place(key.as_bytes().as_bstr())),
        }
    }

    /// Returns the program that stores it.
    fn program(&self) -> &'static str {
        match self {
            Self::Lfs(_) => "git-lfs",
            Self::Annex(_) => "git-annex",
        }
    }
}

/// The expected hash of a content.
enum Hash {
    Sha256(String, Hasher),
    Md5(String, Md5, u64),
}

impl Hash {
    /// Returns the hash in a name, or `None` for another kind of hash.
    fn of(name: &Name) -> Option<Self> {
        let key = match name {
            Name::Lfs(name) => return Some(Self::Sha256(name.clone(), Hasher::default())),
            Name::Annex(key) => key,
        };
        // `<backend>-s<size>--<hash>`, and an extension for backends that end in `E`.
        let (about, hash) = key.split_once("--")?;
        let hash = hash.split('.').next()?.to_owned();
        match about.split('-').next()? {
            "SHA256" | "SHA256E" => Some(Self::Sha256(hash, Hasher::default())),
            "MD5" | "MD5E" => Some(Self::Md5(hash, Md5::new(), 0)),
            _ => None,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(_, hasher) => hasher.update(bytes),
            Self::Md5(_, hasher, size) => {
                hasher.update(bytes);
                *size += bytes.len() as u64;
            }
        }
    }

    /// Returns true if the bytes have the hash, and their number.
    fn finish(self) -> (bool, u64) {
        match self {
            Self::Sha256(wanted, hasher) => {
                let (digest, size): (Digest, u64) = hasher.finish();
                (digest.hex() == wanted, size)
            }
            Self::Md5(wanted, hasher, size) => (hex(&hasher.finalize()) == wanted, size),
        }
    }
}

/// Copies a file into a folder and returns the copy and its size, or `None` if the hash differs or
/// the file exceeds `most` bytes.
fn copy(
    from: File,
    dir: &Path,
    mut hash: Hash,
    most: u64,
    see: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Option<(NamedTempFile, u64)>, Error> {
    let mut to = NamedTempFile::new_in(dir).map_err(Error::at(dir))?;
    let mut from = from.take(most.saturating_add(1));
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).map_err(Error::at(dir))?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        see(&buffer[..count])?;
        to.write_all(&buffer[..count]).map_err(Error::at(dir))?;
    }
    let (is_it, size) = hash.finish();
    Ok((is_it && size <= most).then_some((to, size)))
}

/// Moves a copy to its final name.
fn persist(copied: NamedTempFile, dir: &Path, name: &str) -> Result<(), Error> {
    copied.as_file().sync_all().map_err(Error::at(dir))?;
    copied.persist(dir.join(name)).map(drop).map_err(|error| Error::Io(dir.join(name), error.error))
}
