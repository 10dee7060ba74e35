//! Captures the files below `outputs/`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rustix::fs::FileType;

use super::{Error, store};
use crate::git::store::Batch;
use crate::model::entry::Product;
use crate::model::name::{FilePath, clashes};
use crate::sandbox::folder::{Folder, Room, is_no_folder};
use crate::worktree::host::Host;
use crate::worktree::workspace::Workspace;

/// The most outputs of one attempt.
const MOST: usize = 10_000;

/// Writes every file below `outputs/` into the repository.
///
/// All or nothing: a file that cannot be a product or contains a secret refuses all, before any is
/// written.
pub(super) fn capture(
    workspace: &Workspace,
    host: &Host,
    batch: &mut Batch,
) -> Result<BTreeMap<FilePath, Product>, Error> {
    let Some(root) = root(workspace, host)? else { return Ok(BTreeMap::new()) };
    let names = list(&root, &host.settings.outputs)?;
    if let Some((one, other)) = clashes(names.iter().map(FilePath::as_str)).first() {
        let folder = &host.settings.outputs;
        return Err(Error::refused(format!("`{folder}/{one}` and `{folder}/{other}` cannot stand side by side")));
    }
    let open = |name: &FilePath| {
        let file = root.file(name.as_str()).map_err(|e| refusal(&host.settings.outputs, name.as_str(), e))?;
        let bytes = file.metadata().map_err(Error::at(workspace.outputs()))?.len();
        if bytes > host.settings.max_product { Err(too_large(host, name, bytes)) } else { Ok(file) }
    };
    for name in &names {
        let mut file = open(name)?;
        let path = format!("{}/{name}", host.settings.outputs);
        host.gate.check_reader(&path, &mut file).map_err(Error::at(Path::new(&path)))??;
    }
    let mut outputs = BTreeMap::new();
    for name in names {
        let product = store(batch, &mut open(&name)?)?;
        outputs.insert(name, product);
    }
    Ok(outputs)
}

/// Opens `outputs/`, or returns `None` if it does not exist. No part of its path may be a link.
fn root(workspace: &Workspace, host: &Host) -> Result<Option<Folder>, Error> {
    match workspace.folder().folder("tree").and_then(|tree| tree.folder(&host.settings.outputs)) {
        Ok(folder) => Ok(Some(folder)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if is_no_folder(&e) => Err(Error::refused(format!("`{}` is no folder any more", host.settings.outputs))),
        Err(e) => Err(refusal(&host.settings.outputs, "", e)),
    }
}

/// Lists the files, without following links.
fn list(root: &Folder, folder: &str) -> Result<Vec<FilePath>, Error> {
    let mut names = Vec::new();
    let mut folders = vec![String::new()];
    let mut room = Room::new();
    while let Some(prefix) = folders.pop() {
        let opened = if prefix.is_empty() { None } else { Some(root.folder(prefix.trim_end_matches('/'))) };
        let opened = opened.transpose().map_err(|e| refusal(folder, &prefix, e))?;
        let entries = opened.as_ref().unwrap_or(root).entries().map_err(|e| refusal(folder, &prefix, e))?;
        for entry in entries {
            let (name, kind) = entry.map_err(|e| refusal(folder, &prefix, e))?;
            let Ok(text) = std::str::from_utf8(&name) else {
                let text = String::from_utf8_lossy(&name);
                return Err(Error::refused(format!(
                    "the name of the output {text:?} in `{folder}/{prefix}` is not UTF-8"
                )));
            };
            let text = format!("{prefix}{text}");
            // Also check folders, so that no path exceeds an output's limit.
            let output_name = FilePath::parse(&text).map_err(|e| {
                Error::refused(format!("the output {:?} cannot be taken: {e}", format!("{folder}/{text}")))
            })?;
            match kind {
                FileType::Directory => {
                    room.take(text.len())?;
                    folders.push(text + "/");
                }
                FileType::RegularFile => names.push(output_name),
                FileType::Symlink => {
                    return Err(Error::refused(format!("the output `{folder}/{text}` is a symbolic link")));
                }
                _ => return Err(Error::refused(format!("the output `{folder}/{text}` is no plain file"))),
            }
            if names.len() > MOST {
                return Err(Error::refused(format!("there are more than {MOST} files in `{folder}`")));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// A file without permissions or with a replaced type is the worker's fault; other errors are ours.
fn refusal(folder: &str, name: &str, error: io::Error) -> Error {
    let path = format!("{folder}/{name}");
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::refused(format!("the output `{path}` cannot be read")),
        io::ErrorKind::InvalidInput => Error::refused(format!("the output `{path}` is no plain file")),
        _ if is_no_folder(&error) => Error::refused(format!("the output `{path}` is no plain file")),
        _ => Error::Io(path.into(), error),
    }
}

fn too_large(host: &Host, name: &FilePath, bytes: u64) -> Error {
    let (folder, limit) = (&host.settings.outputs, host.settings.max_product);
    Error::refused(format!("the output `{folder}/{name}` has {bytes} bytes, more than the {limit} that are taken"))
}
