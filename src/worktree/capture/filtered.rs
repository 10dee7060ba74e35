//! Files with filters of the repository, if filters run confined: their output is untrusted bytes
//! that we hash ourselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::index::entry::Mode;

use super::Error;
use super::confined_git;
use super::part::Part;
use super::tree::{Scratch, refusal};
use crate::git::listing::push_entry;
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
    let output =
        scratch.git().args(["check-attr", "-z", "--stdin", "filter"]).input(input).run().map_err(Error::git)?;
    // `path NUL attribute NUL value NUL`
    let mut fields = output.split(|byte| *byte == 0);
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
        Filters::Inside(within) if !paths.is_empty() => confined_git::run(part, scratch, within, paths, failing),
        _ => Ok(Converted::new()),
    }
}

/// Adds the results of filtered paths to the scratch index, with git's modes. A path without a
/// result stays as it is there.
pub(super) fn put(part: &Part<'_>, scratch: &Scratch, converted: &Converted) -> Result<(), Error> {
    let made: Vec<(&BStr, Oid)> = converted.iter().filter_map(|(path, oid)| Some((path.as_bstr(), (*oid)?))).collect();
    if made.is_empty() {
        return Ok(());
    }
    let paths: Vec<&BStr> = made.iter().map(|(path, _)| *path).collect();
    // Without objects for the bytes of the files themselves.
    scratch.update(&paths, &["--info-only"]).map_err(refusal)?;
    let now = scratch.read_index(part)?;
    let mut lines = Vec::new();
    for (path, oid) in made {
        let entry = now.entry_by_path(path);
        if let Some(entry) = entry.filter(|entry| matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE)) {
            push_entry(&mut lines, path, entry.mode.bits(), oid);
        }
    }
    let call = scratch.git().args(["update-index", "-z", "--index-info"]).input(lines);
    call.run().map(drop).map_err(Error::git)
}
