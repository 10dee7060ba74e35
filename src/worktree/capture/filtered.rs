//! Files with filters of the repository, if filters run confined: their output is untrusted bytes
//! that we hash ourselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::State;
use gix::index::entry::Mode;

use super::Error;
use super::inside;
use super::part::Part;
use super::tree::Scratch;
use crate::git::listing::push_entry;
use crate::git::program;
use crate::model::digest::Oid;
use crate::worktree::filters::Filters;

/// The filtered files: a blob each, or `None` if there is none.
pub(crate) type Converted = BTreeMap<BString, Option<Oid>>;

/// The reaction to a failing filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    /// Refuse all files.
    Refuses,
    /// Keep the file's old state, or omit a new file.
    LeavesOut,
}

/// Returns the paths that have a filter. Empty if filters run unconfined: then git applies them.
///
/// Runs no configured program.
pub(crate) fn which(part: &Part<'_>, scratch: &Scratch, paths: &BTreeSet<&BStr>) -> Result<BTreeSet<BString>, Error> {
    if matches!(part.host.filters, Filters::Outside) || !part.git_dir.has_filters() {
        return Ok(BTreeSet::new());
    }
    let dir = part.dir();
    // Links are not filtered.
    let is_file =
        |path: &&&BStr| fs::symlink_metadata(dir.join(OsStr::from_bytes(path))).is_ok_and(|meta| meta.is_file());
    let input: Vec<u8> = paths.iter().filter(is_file).flat_map(|path| path.iter().copied().chain([0])).collect();
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    let said = scratch.git().args(["check-attr", "-z", "--stdin", "filter"]).input(input).run().map_err(Error::git)?;
    // `path NUL attribute NUL value NUL`
    let mut fields = said.split(|byte| *byte == 0);
    let mut found = BTreeSet::new();
    while let (Some(path), Some(_), Some(name)) = (fields.next(), fields.next(), fields.next()) {
        if part.git_dir.has_filter(name) {
            found.insert(BString::from(path));
        }
    }
    match found.first() {
        Some(path) if matches!(part.host.filters, Filters::Nowhere) => Err(Error::Unfiltered(path.to_string())),
        _ => Ok(found),
    }
}

/// Runs the filters of some paths confined and writes the results as objects of the scratch.
pub(crate) fn convert(
    part: &Part<'_>,
    scratch: &Scratch,
    paths: &BTreeSet<BString>,
    failing: Failing,
) -> Result<Converted, Error> {
    match &part.host.filters {
        Filters::Inside(within) if !paths.is_empty() => inside::run(part, scratch, within, paths, failing),
        _ => Ok(Converted::new()),
    }
}

/// Replaces the entries of filtered paths in the scratch index and keeps their modes.
///
/// A path without a result gets its entry in `before` back.
pub(crate) fn put(part: &Part<'_>, scratch: &Scratch, converted: &Converted, before: &State) -> Result<(), Error> {
    if converted.is_empty() {
        return Ok(());
    }
    let now = scratch.read_index(part)?;
    let mut lines = Vec::new();
    for (path, oid) in converted {
        let Some(entry) = now.entry_by_path(path.as_bstr()) else { continue };
        let known = before.entry_by_path(path.as_bstr());
        let (mode, oid) = match (oid, known) {
            (Some(oid), _) if matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE) => (entry.mode.bits(), *oid),
            (Some(_), _) => continue,
            (None, Some(known)) => (known.mode.bits(), Oid(known.id)),
            (None, None) => (0, Oid(part.tree.0.kind().null())),
        };
        push_entry(&mut lines, path.as_ref(), mode, oid);
    }
    let call = scratch.git().args(["update-index", "-z", "--index-info"]).input(lines);
    call.run().map(drop).map_err(Error::git)
}

/// Returns git's modes for such paths, without objects for their bytes.
pub(super) fn modes(scratch: &Scratch, paths: &BTreeSet<BString>) -> Result<(), program::Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let input: Vec<u8> = paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
    let options = ["--add", "--remove", "--replace", "--info-only", "-z", "--stdin"];
    scratch.git().arg("update-index").args(options).input(input).run().map(drop)
}
