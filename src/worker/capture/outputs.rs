//! The files that a worker left as outputs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, store};
use crate::git::store::Batch;
use crate::model::entry::Product;
use crate::model::name::{FilePath, clashes};
use crate::worker::site::Site;
use crate::worker::workspace::{Workspace, open_regular};

/// The most files that one attempt may hand over.
const MOST: usize = 10_000;

/// Writes every file below `outputs/` into the repository.
///
/// Nothing is dropped: what cannot be a product refuses all of them, before any is written.
pub(super) fn capture(
    workspace: &Workspace,
    site: &Site,
    batch: &mut Batch,
) -> Result<BTreeMap<FilePath, Product>, Error> {
    let root = workspace.outputs();
    let names = list(root, &site.outputs)?;
    if let Some((one, other)) = clashes(names.iter().map(FilePath::as_str)).first() {
        let folder = &site.outputs;
        return Err(Error::refused(format!("`{folder}/{one}` and `{folder}/{other}` cannot stand side by side")));
    }
    let mut outputs = BTreeMap::new();
    for name in &names {
        let bytes = fs::symlink_metadata(root.join(name.as_str())).map_err(Error::at(root))?.len();
        if bytes > site.max_product {
            return Err(too_large(site, name, bytes));
        }
    }
    for name in names {
        let path = root.join(name.as_str());
        let mut file = open(&path, &site.outputs, &name)?;
        let bytes = file.metadata().map_err(Error::at(&path))?.len();
        if bytes > site.max_product {
            return Err(too_large(site, &name, bytes));
        }
        let product = store(batch, &mut file)?;
        outputs.insert(name, product);
    }
    Ok(outputs)
}

/// Lists the files, without following links.
fn list(root: &Path, folder: &str) -> Result<Vec<FilePath>, Error> {
    match fs::symlink_metadata(root) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Err(Error::refused(format!("`{folder}` is no folder any more"))),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(e) => return Err(Error::Io(root.to_owned(), e)),
    }
    let mut names = Vec::new();
    let mut folders: Vec<(PathBuf, String)> = vec![(root.to_owned(), String::new())];
    while let Some((dir, prefix)) = folders.pop() {
        let entries = fs::read_dir(&dir).map_err(|e| unreadable(&dir, &format!("{folder}/{prefix}"), e))?;
        for entry in entries {
            let entry = entry.map_err(Error::at(&dir))?;
            let file_name = entry.file_name();
            let Some(text) = file_name.to_str() else {
                let text = file_name.to_string_lossy();
                return Err(Error::refused(format!(
                    "the name of the output {text:?} in `{folder}/{prefix}` is not UTF-8"
                )));
            };
            let text = format!("{prefix}{text}");
            // Folders too, so that no path gets longer than an output's may be.
            let name = FilePath::parse(&text).map_err(|e| {
                Error::refused(format!("the output {:?} cannot be taken: {e}", format!("{folder}/{text}")))
            })?;
            let kind = entry.file_type().map_err(Error::at(&dir))?;
            if kind.is_dir() {
                folders.push((entry.path(), text + "/"));
            } else if kind.is_file() {
                names.push(name);
            } else {
                let what = if kind.is_symlink() { "a symbolic link" } else { "no plain file" };
                return Err(Error::refused(format!("the output `{folder}/{text}` is {what}")));
            }
            if names.len() > MOST {
                return Err(Error::refused(format!("there are more than {MOST} files in `{folder}`")));
            }
        }
    }
    names.sort();
    Ok(names)
}

fn open(path: &Path, folder: &str, name: &FilePath) -> Result<File, Error> {
    open_regular(path).map_err(|e| {
        // A link in its place, or something that is no file: the kind was checked when it was listed.
        let link = e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        if link || e.kind() == io::ErrorKind::InvalidInput {
            return Error::refused(format!("the output `{folder}/{name}` is no plain file"));
        }
        unreadable(path, &format!("{folder}/{name}"), e)
    })
}

/// The worker may have taken away permissions, which is its own doing; anything else is not.
fn unreadable(path: &Path, shown: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::refused(format!("the output `{shown}` cannot be read")),
        _ => Error::Io(path.to_owned(), error),
    }
}

fn too_large(site: &Site, name: &FilePath, bytes: u64) -> Error {
    let (folder, limit) = (&site.outputs, site.max_product);
    Error::refused(format!("the output `{folder}/{name}` has {bytes} bytes, more than the {limit} that are taken"))
}
