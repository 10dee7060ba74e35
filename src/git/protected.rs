//! The reference state of protected files, and the changes of a product to them.
//!
//! Only whole files count: the state of a path is its entry in the base, or in the last consumed
//! patch that changes it. So the state does not depend on how a version of git merges.

mod patched;

use std::collections::{BTreeMap, BTreeSet};

use gix::bstr::{BStr, BString, ByteSlice as _};

use super::listing::push_entry;
use super::merge::{self, Scratch};
use super::patch_paths;
use super::program::{self, Git};
use super::quoted_path;
use crate::model::digest::Oid;
use crate::model::entry::Product;
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{ChangeKind, ProtectedChange};

/// The mode of a file.
pub const FILE: u32 = 0o100_644;

/// The mode of a submodule.
pub const SUBMODULE: u32 = 0o160_000;

/// The mode and object of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The mode, such as `0o100644`.
    pub mode: u32,
    /// The object.
    pub oid: Oid,
}

impl Entry {
    /// Returns the type bits of the mode: a file, a symbolic link or a submodule.
    fn kind(self) -> u32 {
        self.mode & 0o170_000
    }
}

/// The protected files of a tree.
pub type Entries = BTreeMap<BString, Entry>;

/// A consumed patch: its bytes, and the earlier patches that it includes, by their position.
pub struct Consumed {
    /// The bytes of the patch.
    pub patch: Vec<u8>,
    /// The tree that it was made on, if that is not the base.
    pub start: Option<Oid>,
    /// The positions of consumed patches that its item consumed, directly or not.
    pub includes: BTreeSet<usize>,
}

impl Consumed {
    /// Reads patches, each with the tree that it was made on and the positions of those that it
    /// includes.
    pub fn read<E>(
        patches: Vec<(Product, Option<Oid>, BTreeSet<usize>)>,
        read: impl Fn(Product) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<Self>, E> {
        patches.into_iter().map(|(patch, start, includes)| Ok(Self { patch: read(patch)?, start, includes })).collect()
    }
}

/// The reference state of the protected files of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The protected files in the base.
    pub base: Entries,
    /// The protected files in the tree that the attempt began on.
    pub start: Entries,
    /// The protected files in the reference state.
    pub files: Entries,
}

/// Rules whose pathspecs select files as `git ls-files -- <pathspec>` does.
pub struct Protection<'s> {
    scratch: &'s Scratch,
    pathspecs: Vec<&'s String>,
    exceptions: Vec<&'s BTreeSet<String>>,
}

impl<'s> Protection<'s> {
    /// Selects files of trees that `scratch` sees. Without rules it selects none.
    pub fn new(scratch: &'s Scratch, rules: impl IntoIterator<Item = &'s ProtectRule>) -> Self {
        let (mut pathspecs, mut exceptions) = (Vec::new(), Vec::new());
        for rule in rules {
            match rule {
                ProtectRule::Pathspec(pathspec) => pathspecs.push(pathspec),
                ProtectRule::Except { except } => exceptions.push(except),
            }
        }
        Self { scratch, pathspecs, exceptions }
    }

    /// Selects all files.
    pub fn all(scratch: &'s Scratch) -> Self {
        const NONE: &BTreeSet<String> = &BTreeSet::new();
        Self { scratch, pathspecs: Vec::new(), exceptions: vec![NONE] }
    }

    /// Returns the reference state of an attempt that began on the tree `start`: the base with the
    /// protected files of each consumed patch, in order. Two patches that change a file differently
    /// conflict, unless the later one includes the earlier one.
    pub fn reference(&self, start: Oid, consumed: &[Consumed]) -> Result<Reference, Error> {
        let base = self.entries(self.scratch.base())?;
        let start = if start == self.scratch.base() { base.clone() } else { self.entries(start)? };
        let mut files = base.clone();
        let mut changed_by: BTreeMap<BString, usize> = BTreeMap::new();
        for (at, part) in consumed.iter().enumerate() {
            let made_on = part.start.unwrap_or(self.scratch.base());
            let old = if made_on == self.scratch.base() { base.clone() } else { self.entries(made_on)? };
            let new = self.entries(self.patched_on(made_on, part.patch.clone())?)?;
            for path in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                if old.get(path) == new.get(path) {
                    continue;
                }
                let earlier = changed_by.insert(path.clone(), at);
                let is_settled = earlier.is_none_or(|earlier| part.includes.contains(&earlier));
                if !is_settled && files.get(path) != new.get(path) {
                    return Err(Error::Conflict(quote_path(path.as_ref())));
                }
                match new.get(path) {
                    Some(entry) => files.insert(path.clone(), *entry),
                    None => files.remove(path),
                };
            }
        }
        Ok(Reference { base, start, files })
    }

    /// Returns true if the base has a protected file.
    pub fn selects_any(&self) -> Result<bool, Error> {
        Ok(!self.entries(self.scratch.base())?.is_empty())
    }

    /// Returns the tree of the base with the reference state. The tree is written where `scratch`
    /// writes objects.
    pub fn tree(&self, reference: &Reference) -> Result<Oid, Error> {
        let gone = reference.base.keys().filter(|path| !reference.files.contains_key(*path));
        let new = reference.files.iter().filter(|(path, entry)| reference.base.get(*path) != Some(entry));
        edited(self.scratch, self.scratch.base(), gone, new)
    }

    /// Returns the changes of a product's tree to protected files, sorted by path as shown.
    ///
    /// A file as in the tree that the attempt began on is no change, because the product does not
    /// touch it.
    pub fn changes(&self, reference: &Reference, product: Oid) -> Result<Vec<ProtectedChange>, Error> {
        let product = self.entries(product)?;
        let paths: BTreeSet<&BString> =
            reference.files.keys().chain(product.keys()).chain(reference.start.keys()).collect();
        let mut changes = Vec::new();
        for path in paths {
            let (is, should) = (product.get(path), reference.files.get(path));
            if is == should || is == reference.start.get(path) {
                continue;
            }
            let change = match (should, is) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Deleted,
                (Some(old), Some(new)) if old.kind() != new.kind() => ChangeKind::Type,
                _ => ChangeKind::Modified,
            };
            changes.push(ProtectedChange { path: quote_path(path.as_ref()), change });
        }
        // Quoting changes the order.
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changes)
    }

    /// Returns the paths, out of any list with modes, that the rules select. Fails if no index
    /// can hold all of them.
    pub fn select<'p>(&self, paths: impl Iterator<Item = (&'p BStr, u32)>) -> Result<BTreeSet<BString>, Error> {
        let index = self.scratch.folder().join("selected");
        // Names that other systems reserve are ordinary names here.
        let git = || {
            let git = self.scratch.git().env("GIT_INDEX_FILE", &index);
            git.config("core.protectNTFS=false").config("core.protectHFS=false")
        };
        let paths: Vec<_> = paths.collect();
        let mut input = Vec::new();
        for (path, mode) in &paths {
            push_entry(&mut input, path, *mode, self.scratch.base());
        }
        git().args(["read-tree", "--empty"]).run()?;
        git().args(["update-index", "-z", "--index-info"]).input(input).run()?;
        let all = git().args(["ls-files", "-z"]).run()?;
        if all.split(|byte| *byte == 0).count() != paths.len() + 1 {
            return Err(Error::Names);
        }
        Ok(self.listed(git)?.into_keys().collect())
    }

    /// Returns true if the rules select the path of a change.
    pub fn selects_any_of(&self, changes: &[ProtectedChange]) -> Result<bool, Error> {
        // No index holds a folder that is gone and a file of the same name.
        for is_gone in [false, true] {
            let paths = changes.iter().filter(|change| (change.change == ChangeKind::Deleted) == is_gone);
            let paths: Vec<BString> = paths.map(|change| quoted_path::unquoted(change.path.as_bytes())).collect();
            if !paths.is_empty() && !self.select(paths.iter().map(|path| (path.as_ref(), FILE)))?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the protected files of a tree.
    pub fn entries(&self, tree: Oid) -> Result<Entries, Error> {
        let index = self.scratch.folder().join("protected");
        let git = || self.scratch.git().env("GIT_INDEX_FILE", &index);
        git().args(["read-tree", &tree.to_string()]).run()?;
        self.listed(git)
    }

    /// Returns the selected entries of an index.
    fn listed(&self, git: impl Fn() -> Git) -> Result<Entries, Error> {
        // Without a pathspec, git would select all.
        let list = |pathspecs: &mut dyn Iterator<Item = &String>| match pathspecs.next() {
            None => Ok(Entries::new()),
            Some(first) => list_entries(git(), std::iter::once(first).chain(pathspecs)),
        };
        let mut selected = list(&mut self.pathspecs.iter().copied())?;
        if self.exceptions.is_empty() {
            return Ok(selected);
        }
        let all = list_entries(git(), std::iter::empty())?;
        for except in &self.exceptions {
            let free = list(&mut except.iter())?;
            let others = all.iter().filter(|(path, _)| !free.contains_key(*path));
            selected.extend(others.map(|(path, entry)| (path.clone(), *entry)));
        }
        Ok(selected)
    }
}

/// Returns the entries of an index that pathspecs select, or all entries without one.
pub(super) fn list_entries<'p>(git: Git, pathspecs: impl Iterator<Item = &'p String>) -> Result<Entries, Error> {
    let listed = git.args(["ls-files", "-z", "--stage", "--"]).args(pathspecs).run()?;
    let records = listed.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    records.map(|record| parse_entry(record).ok_or(Error::Listing)).collect()
}

fn parse_entry(record: &[u8]) -> Option<(BString, Entry)> {
    let (about, path) = record.split_once_str(b"\t")?;
    let mut fields = about.split_str(" ");
    let mode = u32::from_str_radix(fields.next()?.to_str().ok()?, 8).ok()?;
    let oid = fields.next()?.to_str().ok()?.parse().ok()?;
    Some((BString::from(path), Entry { mode, oid }))
}

/// Returns a tree in which some paths are as in the base.
pub fn without(scratch: &Scratch, start: Oid, tree: Oid, changes: &[ProtectedChange]) -> Result<Oid, Error> {
    let paths: BTreeSet<BString> = changes.iter().map(|change| quoted_path::unquoted(change.path.as_bytes())).collect();
    let start = Protection::all(scratch).entries(start)?;
    edited(scratch, tree, &paths, start.iter().filter(|(path, _)| paths.contains(*path)))
}

/// Returns a tree without some entries, then with others.
fn edited<'p>(
    scratch: &Scratch,
    tree: Oid,
    gone: impl IntoIterator<Item = &'p BString>,
    new: impl IntoIterator<Item = (&'p BString, &'p Entry)>,
) -> Result<Oid, Error> {
    let index = scratch.folder().join("edited");
    let git = || scratch.git().env("GIT_INDEX_FILE", &index);
    git().args(["read-tree", &tree.to_string()]).run()?;
    let mut input = Vec::new();
    let nothing = Oid(tree.0.kind().null());
    gone.into_iter().for_each(|path| push_entry(&mut input, path.as_ref(), 0, nothing));
    new.into_iter().for_each(|(path, entry)| push_entry(&mut input, path.as_ref(), entry.mode, entry.oid));
    git().args(["update-index", "-z", "--index-info"]).input(input).run()?;
    Ok(merge::oid(&scratch.write_tree(git())?)?)
}

/// Returns a path as git writes it with `core.quotePath=false`.
pub fn quote_path(path: &BStr) -> String {
    quoted_path::quoted(path)
}

errors! {
    /// Why the protected files cannot be compared.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    Conflict(String): "two consumed patches change the protected file {0} in different ways";
    Missing(String): "the file {0} of the base is not here";
    Names: "git does not accept the name of a file in the worktree";
    Listing: "git ls-files printed an unknown line";
    #[from] Patch(patch_paths::Malformed), Git(program::Error), Merge(merge::Error);
}
