//! Held-out files: a folder that is laid over the worktree for the check, and that no worker sees.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString};
use serde_json::json;

use crate::model::digest::{Digest, HashingReader, hex};
use crate::model::format;
use crate::worktree::protect::tree::Tree;

/// The most files.
const MOST: usize = 10_000;

/// A folder of held-out files.
#[derive(Clone, Debug)]
pub struct HeldOut {
    folder: PathBuf,
    /// The paths of its files and links, sorted.
    paths: Vec<BString>,
    /// The digest of all paths, types and contents.
    pub digest: Digest,
}

impl HeldOut {
    /// Reads a folder, whose path must be absolute.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let mut paths = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let dir = folder.join(&below);
            for entry in fs::read_dir(&dir).map_err(|e| Error::Io(dir.clone(), e))? {
                let entry = entry.map_err(|e| Error::Io(dir.clone(), e))?;
                let kind = entry.file_type().map_err(|e| Error::Io(dir.clone(), e))?;
                let path = below.join(entry.file_name());
                match (kind.is_dir(), kind.is_file() || kind.is_symlink()) {
                    (true, _) => folders.push(path),
                    (_, true) => paths.push(path),
                    _ => return Err(Error::Kind(dir.join(entry.file_name()))),
                }
                if paths.len() + folders.len() > MOST {
                    return Err(Error::TooMany(folder.to_owned()));
                }
            }
        }
        if paths.iter().any(|path| path.starts_with(".git")) {
            return Err(Error::Kind(folder.join(".git")));
        }
        paths.sort();
        let digest = digest(folder, &paths)?;
        let paths = paths.into_iter().map(|path| BString::from(path.into_os_string().into_vec())).collect();
        Ok(Self { folder: folder.to_owned(), paths, digest })
    }

    /// Returns the relative paths.
    pub(super) fn paths(&self) -> &[BString] {
        &self.paths
    }

    /// Copies a file or link to the same path of a worktree, where nothing exists.
    pub(super) fn copy(&self, path: &BStr, to: &Tree) -> io::Result<()> {
        let from = self.folder.join(OsStr::from_bytes(path));
        let meta = fs::symlink_metadata(&from)?;
        if meta.is_symlink() {
            return to.make_link(path, fs::read_link(&from)?.as_os_str());
        }
        let mode = if meta.permissions().mode() & 0o100 != 0 { 0o777 } else { 0o666 };
        io::copy(&mut File::open(&from)?, &mut to.create(path, mode)?).map(|_| ())
    }

    /// Fails if the files changed since they were read.
    pub(super) fn expect_unchanged(&self) -> Result<(), Error> {
        let now = Self::read(&self.folder)?;
        if now.digest == self.digest { Ok(()) } else { Err(Error::Changed(self.folder.clone())) }
    }
}

/// Returns the digest of a canonical list: for each path its bytes in hexadecimal, its kind, and
/// the digest of the content or of the link's target.
fn digest(folder: &Path, paths: &[PathBuf]) -> Result<Digest, Error> {
    let mut list = Vec::new();
    for path in paths {
        let place = folder.join(path);
        let failed = |error| Error::Io(place.clone(), error);
        let meta = fs::symlink_metadata(&place).map_err(failed)?;
        let (kind, content) = if meta.is_symlink() {
            ("link", Digest::compute(fs::read_link(&place).map_err(failed)?.as_os_str().as_bytes()))
        } else {
            let mut reader = HashingReader::new(File::open(&place).map_err(failed)?);
            io::copy(&mut reader, &mut io::sink()).map_err(failed)?;
            let runs = meta.permissions().mode() & 0o100 != 0;
            (if runs { "program" } else { "file" }, reader.finish().0)
        };
        list.push(json!({ "path": hex(path.as_os_str().as_bytes()), "kind": kind, "sha256": content }));
    }
    Ok(format::digest_of(&list))
}

errors! {
    /// Why held-out files cannot be used.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Io(PathBuf, #[source] io::Error): "cannot read the held-out files {}" [.0.display()];
    Kind(PathBuf): "{} is not a file, a folder or a link that can be held out" [.0.display()];
    TooMany(PathBuf): "{} has more than {MOST} held-out files" [.0.display()];
    Changed(PathBuf): "the held-out files in {} changed during the attempt" [.0.display()];
}
