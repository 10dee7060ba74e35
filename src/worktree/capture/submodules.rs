//! Captures changes to the files of submodules, which the repository's patch cannot carry.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead as _, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::State;

use super::part::Part;
use super::patch::Change;
use super::traps::is_folder;
use super::tree::{Scratch, ignored};
use super::walk::{display_path, walk_submodule};
use super::{Error, patch, repositories};
use crate::model::credential::gate::Secret;
use crate::model::format;
use crate::model::name::FilePath;
use crate::worktree::host::Host;
use crate::worktree::workspace::{Base, Submodule, Workspace};

/// Returns the change to each submodule as a patch by output name, and the repositories that the
/// worker created in submodules. If submodules are not captured, refuses a worktree with changes to
/// them.
///
/// A file in place of a submodule that was not checked out is refused in any case.
pub(super) fn capture(
    workspace: &Workspace,
    host: &Host,
    base: &Base,
) -> Result<(BTreeMap<FilePath, File>, Vec<BString>), Error> {
    let nested = base.submodules().iter().flat_map(Submodule::nested);
    let empty = base
        .gitlinks
        .iter()
        .filter(|path| !base.submodules().iter().any(|submodule| submodule.path == **path))
        .cloned()
        .chain(nested);
    for submodule in base.submodules() {
        match in_place(workspace, &submodule.path) {
            Err(Error::Refused(_)) if !host.settings.capture_submodules => return Err(refused(&submodule.path)),
            placed => placed?,
        }
    }
    empty.into_iter().try_for_each(|path| check_empty(workspace, host, base, &path))?;
    let (mut patches, mut left_out) = (BTreeMap::new(), Vec::new());
    for (at, submodule) in base.submodules().iter().enumerate() {
        let change = change_of(workspace, host, base, at)?;
        if !host.settings.capture_submodules {
            let changed = change.patch.map(|patch| first_path(submodule, patch)).or(change.left_out.first().cloned());
            changed.map_or(Ok(()), |path| Err(refused(&path)))?;
            continue;
        }
        left_out.extend(change.left_out);
        if let Some(patch) = change.patch {
            patches.insert(output(&submodule.path)?, patch);
        }
    }
    Ok((patches, left_out))
}

/// Returns the changes to submodules that can be saved, by output name, and why others cannot.
pub(crate) fn save(
    workspace: &Workspace,
    host: &Host,
    base: &Base,
) -> Result<(BTreeMap<FilePath, File>, Vec<String>), Error> {
    let (mut patches, mut without) = (BTreeMap::new(), Vec::new());
    for (at, submodule) in base.submodules().iter().enumerate().filter(|(_, submodule)| {
        let dir = workspace.tree().join(OsStr::from_bytes(&submodule.path));
        fs::symlink_metadata(dir).is_ok()
    }) {
        let change = in_place(workspace, &submodule.path).and_then(|()| change_of(workspace, host, base, at));
        match change.and_then(|change| Ok((output(&submodule.path)?, change))) {
            Ok((name, change)) => {
                without.extend(change.left_out.iter().map(repositories::in_words));
                patches.extend(change.patch.map(|patch| (name, patch)));
            }
            Err(Error::Refused(why)) => without.push(why),
            Err(Error::Secret(secret)) => without.push(secret.to_string()),
            Err(other) => return Err(other),
        }
    }
    Ok((patches, without))
}

/// Returns the output names for changes to a base's submodules, checked out or not.
pub(super) fn outputs(base: &Base) -> BTreeSet<FilePath> {
    base.gitlinks.iter().filter_map(|path| output(path).ok()).collect()
}

/// Refuses a submodule that was moved or whose `.git` names another repository. Only its files are
/// read, never the worker's git directory in it.
fn in_place(workspace: &Workspace, path: &BString) -> Result<(), Error> {
    let tree = workspace.tree();
    if !is_folder(&tree, path) {
        return Err(Error::refused(format!("the submodule {} was removed or replaced", display_path(path))));
    }
    let git_dir = tree.join(OsStr::from_bytes(path)).join(".git");
    match fs::symlink_metadata(&git_dir) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(Error::refused(format!("the submodule {} was made to point elsewhere", display_path(path)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // The walk reports an unreadable folder better.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(Error::Io(git_dir, error)),
    }
}

/// Returns the change to a submodule, by its position in the base.
fn change_of(workspace: &Workspace, host: &Host, base: &Base, at: usize) -> Result<Change, Error> {
    let (submodule, known) = (&base.submodules()[at], workspace.index());
    let part = Part::of_submodule(workspace, host, submodule);
    let index = known.map_or(submodule.index(), |known| &known.submodules[at]);
    let walked = walk_submodule(host, &part.dir(), index, known.map(|known| known.written))
        .and_then(|walked| if walked.changed { patch::capture(&part, &walked) } else { Ok(Change::default()) });
    let walked = walked.map(|change| Change {
        left_out: change
            .left_out
            .into_iter()
            .map(|path| BString::from([submodule.path.as_slice(), b"/", path.as_slice()].concat()))
            .collect(),
        ..change
    });
    walked.map_err(|error| match error {
        Error::Refused(why) => Error::refused(format!("in the submodule {}: {why}", display_path(&submodule.path))),
        Error::Secret(secret) => {
            Error::Secret(Secret { file: format!("{}/{}", submodule.path, secret.file), ..secret })
        }
        other => other,
    })
}

/// Returns the output name for the change to a submodule.
fn output(path: &BString) -> Result<FilePath, Error> {
    let name = path.to_str().ok().and_then(|path| format::submodule_output(path).ok());
    name.ok_or_else(|| Error::refused(format!("no output can be named after the submodule {}", display_path(path))))
}

/// Returns the first path of a submodule's patch, or the submodule's if git quotes the first.
fn first_path(submodule: &Submodule, mut patch: File) -> BString {
    let mut line = Vec::new();
    let read = patch.rewind().and_then(|()| io::BufReader::new(patch).read_until(b'\n', &mut line));
    match line.trim_end().rsplit_once_str(" b/").filter(|_| read.is_ok()) {
        Some((_, name)) => [submodule.path.as_slice(), b"/", name].concat().into(),
        None => submodule.path.clone(),
    }
}

/// Refuses a submodule that was not checked out and has files, except ignored ones.
fn check_empty(workspace: &Workspace, host: &Host, base: &Base, path: &BString) -> Result<(), Error> {
    let tree = workspace.tree();
    // A link above it leads outside of the worktree, and even names there are confidential. A
    // removed empty folder loses nothing.
    if !is_reached(&tree, path)? {
        return Ok(());
    }
    if !is_folder(&tree, path) {
        return Err(refused(path));
    }
    let inside = |name: &BString| BString::from([path.as_slice(), b"/", name.as_slice()].concat());
    let git_dir = inside(&".git".into());
    if fs::symlink_metadata(tree.join(OsStr::from_bytes(&git_dir))).is_ok_and(|meta| !meta.is_dir()) {
        return Err(refused(&git_dir));
    }
    let kind = base.tree.0.kind();
    let walked = walk_submodule(host, &tree.join(OsStr::from_bytes(path)), &Arc::new(State::new(kind)), None)?;
    let files = walked.sizes.iter().map(|(_, file)| file);
    let new: Vec<BString> =
        files.chain(&walked.nested).chain(&walked.repositories).chain(&walked.closed).map(inside).collect();
    if new.is_empty() {
        return Ok(());
    }
    walked.traps.refuse()?;
    let scratch = Scratch::new(&Part::new(workspace, host, base), &State::new(kind), &BTreeSet::new())?;
    let ignored = ignored(&scratch, &new)?;
    new.iter().find(|file| !ignored.contains(*file)).map_or(Ok(()), |file| Err(refused(file)))
}

/// Returns true if a path of the worktree exists. Refuses a path below a link or another
/// non-folder.
fn is_reached(tree: &Path, path: &BString) -> Result<bool, Error> {
    for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let above = tree.join(OsStr::from_bytes(&path[..at]));
        match fs::symlink_metadata(&above) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(refused(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::Io(above, error)),
        }
    }
    let dir = tree.join(OsStr::from_bytes(path));
    match fs::symlink_metadata(&dir) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::Io(dir, error)),
    }
}

fn refused(path: &BString) -> Error {
    Error::refused(format!(
        "{} was changed, which is a submodule's: no patch can carry that; hand it over below outputs/, or change the submodule in its own repository",
        display_path(path)
    ))
}
