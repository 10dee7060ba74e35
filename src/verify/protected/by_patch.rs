//! Compares what entries record about protected files with the patches, which takes no base.

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::{BStr, BString};

use crate::git::merge::Scratch;
use crate::git::patch_paths::{Change, Changes, Side};
use crate::git::protected::{self, FILE, Protection, SUBMODULE};
use crate::git::quoted_path;
use crate::model::entry::ItemReconciled;
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{ChangeKind, ProtectedChange};

/// The bits of a mode that say what a path is.
const TYPE: u32 = 0o170_000;

/// A patch of an item that protects files.
pub(super) struct Patched<'c> {
    /// The number of the entry that ends the item.
    pub(super) seq: u64,
    pub(super) end: &'c ItemReconciled,
    /// The rules that protect files.
    pub(super) protect: BTreeSet<ProtectRule>,
    pub(super) changes: Changes,
    /// The states that patches of other items, which the item builds on, give to the same paths.
    pub(super) others: BTreeMap<BString, Vec<Side>>,
}

/// Compares patches with their entries. Reports each entry that does not list exactly the changes
/// of its patch to protected files.
///
/// Patches with the same rules are compared together, since git is asked which paths they select.
pub(super) fn compare<'c>(scratch: &Scratch, patched: &[Patched<'c>], report: &mut dyn FnMut(&Patched<'c>, String)) {
    let mut by_rules: BTreeMap<&BTreeSet<ProtectRule>, Vec<&Patched<'c>>> = BTreeMap::new();
    for one in patched {
        by_rules.entry(&one.protect).or_default().push(one);
    }
    for (rules, group) in by_rules {
        let protection = Protection::new(scratch, rules);
        let together = select(&protection, &group);
        for one in group {
            let selected = match &together {
                Ok(selected) => Ok(selected.clone()),
                // No index holds a folder or a submodule and a file of the same name. One side of
                // a patch has no such pair.
                Err(_) => select(&protection, &[one]),
            };
            match selected {
                Ok(selected) => one.faults(&selected).into_iter().for_each(|why| report(one, why)),
                Err(error) => report(one, error.to_string()),
            }
        }
    }
}

/// Returns the changed paths that are protected: before the patches, and after them.
fn select(protection: &Protection<'_>, patched: &[&Patched<'_>]) -> Result<[BTreeSet<BString>; 2], protected::Error> {
    let select_side = |side: fn(&Change) -> &Side| {
        let mut modes: BTreeMap<&BStr, u32> = BTreeMap::new();
        for (path, change) in patched.iter().flat_map(|one| &one.changes) {
            let Side::Present(mode, _) = side(change) else { continue };
            let mode = mode.filter(|mode| *mode == SUBMODULE).unwrap_or(FILE);
            if *modes.entry(path.as_ref()).or_insert(mode) != mode {
                return Err(protected::Error::Names);
            }
        }
        protection.select(modes.into_iter())
    };
    Ok([select_side(|change| &change.old)?, select_side(|change| &change.new)?])
}

impl Patched<'_> {
    fn faults(&self, [before, after]: &[BTreeSet<BString>; 2]) -> Vec<String> {
        let listed: BTreeMap<BString, ChangeKind> = self.end.protected.iter().map(path_and_kind).collect();
        let mut changed = BTreeMap::new();
        for (path, change) in &self.changes {
            // The sets are of several patches.
            let sides = [(&change.old, before), (&change.new, after)]
                .map(|(side, selected)| *side != Side::Absent && selected.contains(path));
            if sides != [false; 2] {
                changed.insert(path, (change, sides));
            }
        }
        let faults = changed
            .iter()
            .filter_map(|(path, (change, sides))| self.fault(path, change, *sides, listed.get(*path).copied()));
        let untouched = listed.keys().filter(|path| !changed.contains_key(path));
        let untouched =
            untouched.map(|path| format!("the entry lists {}, which the patch leaves alone", quote_path(path)));
        faults.chain(untouched).collect()
    }

    /// Returns what is wrong with the listed kind of a change, or with its absence.
    fn fault(
        &self,
        path: &BString,
        change: &Change,
        protected: [bool; 2],
        listed: Option<ChangeKind>,
    ) -> Option<String> {
        let Some(others) = self.others.get(path) else {
            let kind = kind_of(change, protected);
            return match listed {
                Some(listed) if listed == kind => None,
                Some(listed) => {
                    Some(format!("{} was {}, and the entry says {}", quote_path(path), kind.as_str(), listed.as_str()))
                }
                None => Some(format!("{} was {}, and the entry does not list it", quote_path(path), kind.as_str())),
            };
        };
        // A state that no patch before gives is a change. Which state is the
        // reference takes the base.
        let is_as_before = others.iter().any(|side| is_same(side, &change.new));
        let is_overlooked = listed.is_none() && !is_as_before;
        is_overlooked
            .then(|| format!("{} differs from the patches before, and the entry does not list it", quote_path(path)))
    }
}

fn path_and_kind(change: &ProtectedChange) -> (BString, ChangeKind) {
    (quoted_path::unquoted(change.path.as_bytes()), change.change)
}

fn quote_path(path: &BString) -> String {
    protected::quote_path(path.as_ref())
}

/// Returns the kind of a change to a path that no other patch changes, so that its old state is
/// that of the base. A side on which the path is not protected counts as absent.
fn kind_of(change: &Change, protected: [bool; 2]) -> ChangeKind {
    match (&change.old, &change.new) {
        _ if !protected[0] => ChangeKind::Added,
        _ if !protected[1] => ChangeKind::Deleted,
        (Side::Present(Some(old), _), Side::Present(Some(new), _)) if old & TYPE != new & TYPE => ChangeKind::Type,
        _ => ChangeKind::Modified,
    }
}

/// Returns true if two states are surely the same.
fn is_same(one: &Side, other: &Side) -> bool {
    match (one, other) {
        (Side::Absent, Side::Absent) => true,
        (Side::Present(Some(_), Some(_)), _) => one == other,
        _ => false,
    }
}
