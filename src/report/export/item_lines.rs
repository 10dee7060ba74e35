//! The lines that the items of a run made, at the state after their patch or in a commit.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use gix::bstr::ByteSlice as _;
use serde::Serialize;

use crate::git::quoted_path;
use crate::model::digest::Oid;
use crate::model::entry::Product;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::whence::CommitLines;
use crate::whence::answer::Named;
use crate::whence::diff::{Diff, FileDiff};

use super::Error;
use super::facts::{Attempt, Facts};

/// The reason for a path that is not UTF-8.
pub(super) const NOT_UTF8: &str = "its path is not UTF-8";

/// The lines that an item made.
pub(super) struct ItemLines<'f, 'a> {
    pub(super) attempt: &'f Attempt<'a>,
    pub(super) patch: Product,
    /// The line ranges by file, from 1.
    pub(super) files: BTreeMap<String, Vec<RangeInclusive<u64>>>,
    /// The changed files without line ranges.
    pub(super) others: Vec<OtherFile>,
}

/// A file that an item changed and that has no line ranges.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OtherFile {
    /// The path as git writes it with `core.quotePath=false`.
    pub(super) path: String,
    pub(super) why: &'static str,
}

/// The state that line numbers refer to.
#[derive(Clone, Copy)]
pub(super) enum LinesIn<'c> {
    /// The item's base with its patch applied.
    Patch,
    /// A commit that contains the item's lines.
    Commit(&'c CommitLines),
}

impl LinesIn<'_> {
    /// Returns the commit, if lines are those of one.
    pub(super) fn commit(self) -> Option<Oid> {
        match self {
            Self::Patch => None,
            Self::Commit(lines) => Some(lines.commit),
        }
    }

    /// Describes the state in a record.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Patch => "the item's patch, applied to its base; no commit is meant",
            Self::Commit(_) => "the commit, as `git handoff whence` proves them",
        }
    }
}

/// Returns the lines of all items with a patch, or of one item, in plan order. In a commit, items
/// without a line are left out.
pub(super) fn made<'f, 'a>(
    facts: &'f Facts<'a>,
    only: Option<ItemIndex>,
    lines_in: LinesIn<'_>,
) -> Result<Vec<ItemLines<'f, 'a>>, Error> {
    let mut made = Vec::new();
    for at in facts.run.state.graph.items().indices().filter(|at| only.is_none_or(|only| only == *at)) {
        let patch = facts.run.state.items[at].products.get(&ProductKey::Patch);
        let (Some(patch), Some(attempt)) = (patch.copied(), facts.result_of(at)) else { continue };
        let mut lines = ItemLines { attempt, patch, files: BTreeMap::new(), others: Vec::new() };
        match lines_in {
            LinesIn::Patch => {
                let bytes = facts.run.blob(&patch).read(facts.store)?;
                lines.read_patch(&bytes);
            }
            LinesIn::Commit(commit) => {
                lines.read_commit(commit, facts, facts.id(at));
                if lines.files.is_empty() {
                    continue;
                }
            }
        }
        made.push(lines);
    }
    Ok(made)
}

impl ItemLines<'_, '_> {
    fn read_patch(&mut self, bytes: &[u8]) {
        for (path, file) in Diff::read(bytes).files {
            let other = |why| OtherFile { path: quoted_path::quoted(path.as_ref()), why };
            match (path.to_str(), without_lines(&file)) {
                (_, Some(why)) => self.others.push(other(why)),
                (Err(_), None) => self.others.push(other(NOT_UTF8)),
                (Ok(path), None) => {
                    let ranges = self.files.entry(path.to_owned()).or_default();
                    file.places.iter().for_each(|line| join(ranges, *line..=*line));
                }
            }
        }
    }

    fn read_commit(&mut self, commit: &CommitLines, facts: &Facts<'_>, id: &ItemId) {
        let is_ours =
            |item: &Named| item.run == facts.run.run && item.reference == facts.document.reference && item.item == *id;
        for line in commit.lines.iter().filter(|line| line.proven && line.items.iter().any(is_ours)) {
            join(self.files.entry(line.path.clone()).or_default(), line.from..=line.to);
        }
        self.others.extend(commit.unnamed.iter().map(|path| OtherFile { path: path.clone(), why: NOT_UTF8 }));
    }
}

/// Returns the reason why the new state of a file has no lines of the patch.
fn without_lines(file: &FileDiff) -> Option<&'static str> {
    match file {
        _ if file.gone => Some("deleted"),
        _ if file.binary.is_some() => Some("binary"),
        _ if !file.places.is_empty() => None,
        _ if !file.removed.is_empty() => Some("only removed lines"),
        _ if file.new => Some("empty"),
        _ => Some("only its mode"),
    }
}

/// Adds a range that begins after the others, joined with the last one if it follows directly.
fn join(ranges: &mut Vec<RangeInclusive<u64>>, next: RangeInclusive<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end().checked_add(1) == Some(*next.start()) => *last = *last.start()..=*next.end(),
        _ => ranges.push(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let mut ranges = Vec::new();
        [1..=1, 2..=2, 4..=6, 7..=7].into_iter().for_each(|range| join(&mut ranges, range));
        assert_eq!(ranges, [1..=2, 4..=7]);
    }
}
