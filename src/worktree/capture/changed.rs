//! Builds the tree of a worktree from the base's tree and the changed paths.
//!
//! The walk already compared every file, so git sees only changed paths: the cost of a capture
//! depends on the changes, not on the size of the tree. git adds each file to an index, with its
//! filters and conversions; the entries then replace those of the base's tree.

use std::collections::BTreeSet;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::Mode;
use gix::objs::tree::{Editor, EntryKind};
use gix::objs::{Kind, Write as _, WriteTo as _};

use super::Error;
use super::filtered::{self, Converted, Failing};
use super::part::Part;
use super::tree::{Scratch, ignored, refusal};
use super::walk::{Walked, display_path};
use crate::model::digest::Oid;

/// Creates the temporary index of the changed files.
pub(crate) fn scratch(part: &Part<'_>, walked: &Walked) -> Result<Scratch, Error> {
    Scratch::new(part, walked.index(), &tracked(walked))
}

/// Writes the tree of the worktree and returns its id.
pub(super) fn write(part: &Part<'_>, walked: &Walked, scratch: &Scratch) -> Result<Oid, Error> {
    let paths = files_to_take(walked, scratch)?;
    add(part, scratch, &paths, Failing::Refuses)?;
    let now = scratch.read_index(part)?;
    // git only warns about a path that it cannot add.
    if let Some(path) = paths.iter().find(|path| now.entry_by_path(path).is_none()) {
        return Err(Error::refused(format!("git cannot keep {}", display_path(path))));
    }
    edit(part, &walked.gone, &now, scratch)
}

/// Returns the changed files, except new ones that git ignores.
pub(crate) fn files_to_take<'w>(walked: &'w Walked, scratch: &Scratch) -> Result<BTreeSet<&'w BStr>, Error> {
    let mut paths = tracked(walked);
    let new: Vec<&BString> =
        walked.sizes.iter().map(|(_, path)| path).filter(|path| !paths.contains(path.as_bstr())).collect();
    let ignored = ignored(scratch, &new)?;
    paths.extend(new.into_iter().filter(|path| !ignored.contains(*path)).map(|path| path.as_bstr()));
    Ok(paths)
}

/// Adds files to the index. Returns what filters made of those that have one.
///
/// With [`Failing::LeavesOut`], a file that cannot be added keeps its state in the base.
pub(crate) fn add(
    part: &Part<'_>,
    scratch: &Scratch,
    paths: &BTreeSet<&BStr>,
    failing: Failing,
) -> Result<Converted, Error> {
    let filtered = filtered::which(part, scratch, paths)?;
    let converted = match filtered::convert(part, scratch, &filtered, failing) {
        Err(Error::Refused(_)) if failing == Failing::LeavesOut => {
            filtered.into_iter().map(|path| (path, None)).collect()
        }
        other => other?,
    };
    let plain: Vec<&BStr> = paths.iter().copied().filter(|path| !converted.contains_key(*path)).collect();
    update(scratch, &plain, failing)?;
    filtered::put(part, scratch, &converted)?;
    Ok(converted)
}

fn update(scratch: &Scratch, paths: &[&BStr], failing: Failing) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    match scratch.update(paths, &[]).map_err(refusal) {
        // git adds none if there is one that it cannot read.
        Err(Error::Refused(_)) if failing == Failing::LeavesOut => {
            let (one, other) = paths.split_at(paths.len() / 2);
            if one.is_empty() {
                Ok(())
            } else {
                update(scratch, one, failing).and_then(|()| update(scratch, other, failing))
            }
        }
        other => other,
    }
}

fn tracked(walked: &Walked) -> BTreeSet<&BStr> {
    let paths = walked.sizes.iter().map(|(_, path)| path.as_bstr());
    paths.filter(|path| walked.index().entry_by_path(path).is_some()).collect()
}

/// Removes deleted paths from the base's tree and adds the entries of the index.
pub(crate) fn edit(part: &Part<'_>, gone: &[BString], now: &State, scratch: &Scratch) -> Result<Oid, Error> {
    let failed = |e: gix::Error| Error::Io(scratch.objects(), std::io::Error::other(e));
    let repo = part.store.unbounded().map_err(Error::Store)?;
    let root = repo.find_tree(part.tree.0).and_then(|tree| Ok(tree.decode()?.into())).map_err(failed)?;
    let mut editor = Editor::new(root, &repo.objects, repo.object_hash());
    for path in gone {
        editor.remove(path.split(|byte| *byte == b'/').map(BStr::new)).map_err(failed)?;
    }
    for entry in now.entries() {
        let kind = match entry.mode {
            Mode::SYMLINK => EntryKind::Link,
            Mode::FILE_EXECUTABLE => EntryKind::BlobExecutable,
            Mode::FILE => EntryKind::Blob,
            _ => return Err(Error::refused(format!("{} is no file", display_path(entry.path(now))))),
        };
        let parts = entry.path(now).split(|byte| *byte == b'/').map(BStr::new);
        editor.upsert(parts, kind, entry.id).map_err(failed)?;
    }
    let objects = gix::odb::loose::Store::at(scratch.objects(), repo.object_hash());
    let written = editor.write(|tree| {
        let mut bytes = Vec::new();
        tree.write_to(&mut bytes)?;
        objects.write_buf(Kind::Tree, &bytes).map_err(std::io::Error::other)
    });
    written.map(Oid).map_err(|e| Error::Io(scratch.objects(), std::io::Error::other(e)))
}
