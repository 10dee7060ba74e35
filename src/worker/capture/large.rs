//! What git-lfs would keep beside the repository, of files that its filter made pointers of.
//!
//! It is kept in the attempt's folder until it is known that the pointers are: the bytes are looked at for secrets as those of any
//! product are, and they go to the repository once, after all else.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use gix::bstr::BStr;

use super::Error;
use super::part::Part;
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

/// Looks at what a blob that filters made points to, where they left that in `filter`, and keeps it.
pub(super) fn keep(part: &Part<'_>, filter: &Folder, path: &BStr, blob: &[u8]) -> Result<Kept, Error> {
    let Some(name) = named(blob) else { return Ok(Kept::Nothing) };
    let place = format!("lfs/objects/{}/{}/{name}", &name[..2], &name[2..4]);
    // What was there before the attempt is not made again.
    let Ok(file) = filter.file(&place) else { return Ok(Kept::Nothing) };
    let held = part.workspace.dir.join(HELD);
    let mut scan = match part.host.gate.scan(&String::from_utf8_lossy(path)) {
        Ok(scan) => scan,
        Err(secret) => return Ok(Kept::Secret(secret)),
    };
    fs::create_dir_all(&held).map_err(Error::at(&held))?;
    let mut secret = None;
    let mut see = |bytes: &[u8]| {
        if secret.is_none() {
            secret = scan.push(bytes).err();
        }
    };
    let copied = copy(file, &held, &name, part.host.max_product, &mut see).map_err(Error::at(&held))?;
    let secret = secret.or_else(|| scan.finish().err());
    if let Some(secret) = secret {
        part.workspace.folder().remove(HELD).map_err(Error::at(&held))?;
        return Ok(Kept::Secret(secret));
    }
    if !copied {
        return Err(Error::refused(format!(
            "what the filter of git-lfs left of {path} is not what it names, or too large"
        )));
    }
    let large = Large { name, to: part.git_dir.lfs().to_owned() };
    part.host.taking.large.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(large);
    Ok(Kept::Held)
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
        if !copy(held, &dir, name, u64::MAX, &mut |_| ()).map_err(Error::at(&dir))? {
            return Err(Error::Io(dir.join(name), io::ErrorKind::InvalidData.into()));
        }
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

/// Copies a file into a folder, by a name that its bytes must hash to; returns whether they do, and are no more than `most`.
fn copy(from: File, dir: &Path, name: &str, most: u64, see: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
    let mut to = tempfile::NamedTempFile::new_in(dir)?;
    let mut hasher = Hasher::default();
    let mut from = from.take(most.saturating_add(1));
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        see(&buffer[..count]);
        to.write_all(&buffer[..count])?;
    }
    let (digest, size): (Digest, u64) = hasher.finish();
    if digest.hex() != name || size > most {
        return Ok(false);
    }
    to.as_file().sync_all()?;
    to.persist(dir.join(name)).map_err(|error| error.error)?;
    Ok(true)
}
