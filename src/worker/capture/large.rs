//! What git-lfs or git-annex would keep beside the repository, of files that its filter made pointers of.
//!
//! It is kept in the attempt's folder until it is known that the pointers are: the bytes are looked at for secrets as those of any
//! product are, and they go to the repository once, after all else.

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
use crate::model::digest::{Digest, Hasher};
use crate::worker::folder::Folder;
use crate::worker::workspace::{Workspace, annex};

/// The name of that place in the attempt's folder.
const HELD: &str = "large";

/// The most bytes of a pointer, and how one begins.
const POINTER: (usize, &[u8]) = (1024, b"version https://git-lfs.github.com/spec/");

/// What stands before the name in a pointer.
const NAME: &str = "oid sha256:";

/// One object of git-lfs, or one content of git-annex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Large {
    /// Its name, which says what its bytes hash to.
    name: Name,
    /// Where the repository that it belongs to has such objects: the folder of git-lfs, or the git directory.
    to: PathBuf,
}

/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    /// The SHA-256 of an object of git-lfs.
    Lfs(String),
    /// The key of a content of git-annex.
    Annex(String),
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
    let Some(name) = Name::of(blob) else { return Ok(Kept::Nothing) };
    let place = name.place();
    let Some(place) = place.to_str() else { return Ok(Kept::Nothing) };
    // What was there before the attempt is not made again.
    let Ok(file) = filter.file(place) else { return Ok(Kept::Nothing) };
    match hold(part, file, path, name, left) {
        Err(Error::Secret(secret)) => Ok(Kept::Secret(secret)),
        held => held.map(|()| Kept::Held),
    }
}

/// Copies an object to where it is held, unless it is there. It is looked at for each path that names it: what is allowed in one may be
/// a secret in another.
fn hold(part: &Part<'_>, file: File, path: &BStr, name: Name, left: &mut u64) -> Result<(), Error> {
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
    let most = if is_held { part.host.max_product } else { part.host.max_product.min(*left) };
    let copied = copy(file, &dir, hash, most, &mut |bytes| {
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

/// Takes what was kept over into the repository, where git-lfs or git-annex finds it; what is there already stays.
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

/// Gives a content to git-annex, which moves the file and notes that the content is present.
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

    /// Returns where it lies below a git directory.
    fn place(&self) -> PathBuf {
        match self {
            Self::Lfs(name) => format!("lfs/objects/{}/{}/{name}", &name[..2], &name[2..4]).into(),
            Self::Annex(key) => Path::new("annex/objects").join(annex::place(key.as_bytes().as_bstr())),
        }
    }

    /// Returns the name of the program that keeps it.
    fn program(&self) -> &'static str {
        match self {
            Self::Lfs(_) => "git-lfs",
            Self::Annex(_) => "git-annex",
        }
    }
}

/// A hash that bytes are to have.
enum Hash {
    Sha256(String, Hasher),
    Md5(String, Md5, u64),
}

impl Hash {
    /// Returns the hash that a name holds, or `None` if that is of another kind.
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

    /// Returns whether the bytes have the hash, and how many there were.
    fn finish(self) -> (bool, u64) {
        match self {
            Self::Sha256(wanted, hasher) => {
                let (digest, size): (Digest, u64) = hasher.finish();
                (digest.hex() == wanted, size)
            }
            Self::Md5(wanted, hasher, size) => {
                let hex = hasher.finalize().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
                (hex == wanted, size)
            }
        }
    }
}

/// Copies a file into a folder, and returns the copy and its size; none where they do not have the hash, or are more than `most`.
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

/// Gives a copy its name.
fn persist(copied: NamedTempFile, dir: &Path, name: &str) -> Result<(), Error> {
    copied.as_file().sync_all().map_err(Error::at(dir))?;
    copied.persist(dir.join(name)).map(drop).map_err(|error| Error::Io(dir.join(name), error.error))
}
