//! Captures changes to the files of submodules, which the repository's patch cannot carry.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::{BString, ByteSlice as _};
use gix::index::entry::Mode;
use gix::index::{Entry, State};

use super::part::Part;
use super::patch::Change;
use super::traps::{is_folder, traps};
use super::tree::{Scratch, ignored};
use super::walk::{is_same_content, shown, walk_submodule};
use super::{Error, patch, repositories};
use crate::git::bounded_read;
use crate::git::store::Store;
use crate::model::credential::gate::Secret;
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::{FilePath, is_dot_git};
use crate::worktree::host::Host;
use crate::worktree::workspace::record::{Node, Recorded};
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
    let checked_out = |path: &BString| base.submodules().iter().find(|submodule| submodule.path == *path);
    if !host.settings.capture_submodules {
        let all = base.gitlinks.iter().map(|path| (path.clone(), checked_out(path)));
        check(workspace, host, base, all)?;
        return Ok((BTreeMap::new(), Vec::new()));
    }
    let nested = base.submodules().iter().flat_map(Submodule::nested);
    let empty = base.gitlinks.iter().filter(|path| checked_out(path).is_none()).cloned();
    let places = base.submodules().iter().try_for_each(|submodule| in_place(workspace, submodule));
    places.and_then(|()| check(workspace, host, base, empty.chain(nested).map(|path| (path, None))))?;
    let (mut patches, mut left_out) = (BTreeMap::new(), Vec::new());
    for submodule in base.submodules() {
        let change = change_of(workspace, host, submodule)?;
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
    let is_there = |submodule: &&Submodule| {
        let dir = workspace.tree().join(OsStr::from_bytes(&submodule.path));
        fs::symlink_metadata(dir).is_ok()
    };
    for submodule in base.submodules().iter().filter(is_there) {
        let change = in_place(workspace, submodule).and_then(|()| change_of(workspace, host, submodule));
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
fn in_place(workspace: &Workspace, submodule: &Submodule) -> Result<(), Error> {
    let (tree, path) = (workspace.tree(), &submodule.path);
    if !is_folder(&tree, path) {
        return Err(Error::refused(format!("the submodule {} was removed or replaced", shown(path))));
    }
    let git_dir = tree.join(OsStr::from_bytes(path)).join(".git");
    match fs::symlink_metadata(&git_dir) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(Error::refused(format!("the submodule {} was made to point elsewhere", shown(path)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // The walk reports an unreadable folder better.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(Error::Io(git_dir, error)),
    }
}

fn change_of(workspace: &Workspace, host: &Host, submodule: &Submodule) -> Result<Change, Error> {
    let part = Part::of_submodule(workspace, host, submodule);
    let walked = walk_submodule(&part, submodule.index(), find(workspace.recorded(), &submodule.path))
        .and_then(|walked| if walked.changed { patch::capture(&part, &walked) } else { Ok(Change::default()) });
    let below = |path: BString| BString::from([submodule.path.as_slice(), b"/", path.as_slice()].concat());
    let walked = walked.map(|change| Change { left_out: change.left_out.into_iter().map(below).collect(), ..change });
    walked.map_err(|error| match error {
        Error::Refused(why) => Error::refused(format!("in the submodule {}: {why}", shown(&submodule.path))),
        Error::Secret(secret) => {
            Error::Secret(Secret { file: format!("{}/{}", submodule.path, secret.file), ..secret })
        }
        other => other,
    })
}

/// Returns the output name for the change to a submodule.
fn output(path: &BString) -> Result<FilePath, Error> {
    let name = path.to_str().ok().and_then(|path| format::submodule_output(path).ok());
    name.ok_or_else(|| Error::refused(format!("no output can be named after the submodule {}", shown(path))))
}

/// Refuses a worktree in which the files of a submodule differ from the checkout, or in which a
/// submodule that was not checked out has files.
///
/// Ignored files do not count.
fn check<'a>(
    workspace: &Workspace,
    host: &Host,
    base: &Base,
    submodules: impl Iterator<Item = (BString, Option<&'a Submodule>)>,
) -> Result<(), Error> {
    let mut new = Vec::new();
    for (path, submodule) in submodules {
        let (tree, index, store) =
            (workspace.tree(), submodule.map(Submodule::index), submodule.map(|submodule| &submodule.store));
        // A link above it leads outside of the worktree, and even names there are confidential.
        if !is_reached(&tree, &path)? {
            match submodule {
                Some(_) => return Err(refused(&path)),
                // A removed empty folder loses nothing.
                None => continue,
            }
        }
        let mut look = Look { tree: &tree, top: &path, index, store, seen: BTreeSet::new(), new: Vec::new() };
        look.at(&path, find(workspace.recorded(), &path))?;
        look.missing()?;
        if !look.new.is_empty() {
            traps(&tree, path.clone())?.refuse()?;
        }
        new.extend(look.new);
    }
    if new.is_empty() {
        return Ok(());
    }
    let part = Part::of(workspace, host, base);
    let scratch = Scratch::of(&part, &State::new(base.tree.0.kind()), &BTreeSet::new())?;
    let ignored = ignored(&scratch, &new)?;
    match new.iter().find(|path| !ignored.contains(*path)) {
        Some(path) => Err(refused(path)),
        None => Ok(()),
    }
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
        shown(path)
    ))
}

/// Returns the recorded state of a folder of the worktree.
fn find<'a>(recorded: Option<&'a Recorded>, path: &BString) -> Option<&'a Recorded> {
    match recorded?.node(path)? {
        Node::Folder(folder) => Some(folder),
        Node::File(_) => None,
    }
}

/// The check of one submodule.
struct Look<'a> {
    tree: &'a Path,
    top: &'a BString,
    /// The checked-out index, or `None`.
    index: Option<&'a State>,
    /// Its object store.
    store: Option<&'a Store>,
    /// The entries of `index` whose files exist.
    seen: BTreeSet<usize>,
    /// Files that are not in the index.
    new: Vec<BString>,
}

impl Look<'_> {
    /// Checks a folder, or whatever replaced it, and everything below. Follows no links.
    fn at(&mut self, path: &BString, known: Option<&Recorded>) -> Result<(), Error> {
        let mut left = vec![(path.clone(), known)];
        while let Some((folder, known)) = left.pop() {
            let dir = self.tree.join(OsStr::from_bytes(&folder));
            let entries = match fs::symlink_metadata(&dir) {
                Ok(meta) if meta.is_dir() => fs::read_dir(&dir).map_err(Error::at(&dir))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::Io(dir, error)),
                Ok(_) => return Err(refused(&folder)),
            };
            for entry in entries {
                let entry = entry.map_err(Error::at(&dir))?;
                let name = entry.file_name();
                let mut path = folder.clone();
                path.push(b'/');
                path.extend_from_slice(name.as_bytes());
                let is_folder = entry.file_type().map_err(Error::at(&dir))?.is_dir();
                if is_dot_git(&name.to_string_lossy()) {
                    // Ours, or a replacement. Its content is not read.
                    if is_folder && folder == *self.top && name == ".git" {
                        continue;
                    }
                    // git must not run beside a `.git` that is not ours.
                    return Err(refused(&path));
                }
                let node = known.and_then(|known| known.node(name.as_bytes()));
                match node {
                    Some(Node::Folder(below)) if is_folder => left.push((path, Some(below))),
                    _ if is_folder => left.push((path, None)),
                    _ => self.file(path, node)?,
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: BString, node: Option<&Node>) -> Result<(), Error> {
        let below = path[self.top.len() + 1..].as_bstr();
        let tracked = self.index.and_then(|index| Some((index, index.entry_index_by_path(below).ok()?)));
        let Some((index, at)) = tracked else {
            self.new.push(path);
            return Ok(());
        };
        self.seen.insert(at);
        let file = self.tree.join(OsStr::from_bytes(&path));
        if node.is_some_and(|node| node.is_as_it_was(&file)) {
            return Ok(());
        }
        let meta = gix::index::fs::Metadata::from_path_no_follow(&file).map_err(Error::at(&file))?;
        let entry = &index.entries()[at];
        let has_mode = meta.is_executable() == (entry.mode == Mode::FILE_EXECUTABLE) || entry.mode == Mode::SYMLINK;
        if has_mode && self.has_size(entry, meta.len()) && is_same_content(&file, entry, &meta) {
            Ok(())
        } else {
            Err(refused(&path))
        }
    }

    /// Returns true if a file is at most as long as its checked-out blob: larger ones differ and
    /// need not be read.
    fn has_size(&self, entry: &Entry, size: u64) -> bool {
        let header = self.store.and_then(|store| bounded_read::header(&store.local(), Oid(entry.id)).ok().flatten());
        header.is_some_and(|(_, most)| size <= most)
    }

    /// Fails if files are missing.
    fn missing(&self) -> Result<(), Error> {
        let Some(index) = self.index else { return Ok(()) };
        let gone = index
            .entries()
            .iter()
            .enumerate()
            .find(|(at, entry)| entry.mode != Mode::COMMIT && !self.seen.contains(at));
        match gone {
            Some((_, entry)) => {
                let mut path = self.top.clone();
                path.push(b'/');
                path.extend_from_slice(entry.path(index));
                Err(refused(&path))
            }
            None => Ok(()),
        }
    }
}
