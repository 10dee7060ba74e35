//! Gives protected files their reference state while a check runs.
//!
//! The files of the reference state are checked out beside the worktree first. A file of the
//! worktree that differs is moved aside, and the reference file takes its place. After the check
//! everything moves back, so that the product is the worker's. All access goes
//! through open folders (`tree`), so that no link of the worker leads out of the worktree.

mod enforced;
mod setup_files;
mod tracked;
pub(super) mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;

use gix::bstr::{BStr, BString, ByteSlice as _};
use rustix::fs::FileType;

pub use enforced::Enforced;
use tree::Tree;

use crate::git::merge::{self, Scratch};
use crate::git::protected::{self, Consumed, FILE, Protection, Reference, SUBMODULE};
use crate::git::store::Store;
use crate::git::verified_stream;
use crate::model::digest::{Digest, Oid};
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::ProtectedChange;
use crate::worktree::held_out::{self, HeldOut};
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Workspace};

/// The folder of an attempt for reference files and for files moved aside.
const FOLDER: &str = "protect";
/// A file there while held-out files are in the worktree.
const HELD_OUT: &str = "held-out";
/// The most files of a worktree that are searched for protected ones.
const MOST_FILES: usize = 2_000_000;

/// The protected files of an attempt.
pub struct Guard {
    scratch: Scratch,
    /// The tree that the attempt begins on.
    start: Oid,
    rules: BTreeSet<ProtectRule>,
    /// True if only files of the base and of the reference state are protected.
    tracked: bool,
    reference: Reference,
    /// The tree of the base with the reference state, if files are protected.
    pub tree: Option<Oid>,
    held_out: Option<HeldOut>,
}

impl Guard {
    /// Computes the reference state of an attempt that begins on the tree `start`, or on the base.
    /// `held_out` is laid over it.
    pub fn new(
        store: &Store,
        base: Oid,
        start: Option<Oid>,
        rules: BTreeSet<ProtectRule>,
        consumed: &[Consumed],
        held_out: Option<HeldOut>,
    ) -> Result<Self, Error> {
        let scratch = Scratch::new(store, base)?;
        let start = start.unwrap_or(scratch.base());
        if rules.is_empty() {
            let reference = Reference::default();
            return Ok(Self { scratch, start, rules, tracked: false, reference, tree: None, held_out });
        }
        let protection = Protection::new(&scratch, &rules);
        let reference = protection.reference(start, consumed)?;
        let tree = Some(protection.tree(&reference)?);
        Ok(Self { rules, start, tracked: false, reference, tree, scratch, held_out })
    }

    /// Returns the changes of a patch to protected files.
    pub fn changes(&self, patch: Option<Vec<u8>>) -> Result<Vec<ProtectedChange>, Error> {
        if self.rules.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.protection().changes(&self.reference, self.product(patch)?)?)
    }

    /// Returns the tree that a patch makes.
    fn product(&self, patch: Option<Vec<u8>>) -> Result<Oid, Error> {
        let patched = patch.map(|patch| self.scratch.patched_on(self.start, patch).map_err(merge::Error::Git));
        Ok(patched.transpose()?.unwrap_or(self.start))
    }

    /// Returns true if other rules select the path of a change.
    pub fn selects_any_of(&self, rules: &[ProtectRule], changes: &[ProtectedChange]) -> Result<bool, Error> {
        Ok(!rules.is_empty() && Protection::new(&self.scratch, rules).selects_any_of(changes)?)
    }

    fn protection(&self) -> Protection<'_> {
        Protection::new(&self.scratch, &self.rules)
    }

    /// Gives the protected files of a worker's worktree their reference state.
    pub fn enforce<'a>(&'a self, host: &'a Host, workspace: &'a Workspace) -> Result<Enforced<'a>, Error> {
        self.enforce_with(host, workspace, None, self.held_out.as_ref())
    }

    /// Gives the protected files of a fresh worktree their reference state for good, before its
    /// setup runs. Returns the number of files that differed.
    pub fn settle(&self, host: &Host, workspace: &Workspace) -> Result<usize, Error> {
        let enforced = self.enforce_with(host, workspace, None, None)?;
        let restored = enforced.restored();
        enforced.keep()?;
        Ok(restored)
    }

    /// Gives the protected files of a fresh worktree with a patch their reference state. Files that
    /// its setup made and git ignores stay, unless a pathspec protects them.
    pub fn enforce_fresh<'a>(
        &'a self,
        host: &'a Host,
        workspace: &'a Workspace,
        patch: Option<(Oid, Digest)>,
    ) -> Result<Enforced<'a>, Error> {
        let product_paths = self.product_paths(host, patch)?;
        self.enforce_with(host, workspace, product_paths, self.held_out.as_ref())
    }

    fn enforce_with<'a>(
        &'a self,
        host: &'a Host,
        workspace: &'a Workspace,
        product_paths: Option<BTreeSet<BString>>,
        held_out: Option<&'a HeldOut>,
    ) -> Result<Enforced<'a>, Error> {
        if workspace.is_in_doubt() {
            return Err(Error::StillRunning);
        }
        if !workspace.is_in_place() {
            return Err(Error::Moved);
        }
        let attempt = workspace.folder();
        let failed = Error::at(FOLDER.into());
        attempt.remove(FOLDER).map_err(failed)?;
        let open = |name: &str| -> Result<Tree, Error> {
            let at = |error| Error::Io(name.to_owned(), error);
            attempt.make(FOLDER).or_else(exists).map_err(at)?;
            let folder = attempt.own_folder(FOLDER).map_err(at)?;
            folder.make(name).or_else(exists).map_err(at)?;
            Tree::open(folder.as_fd(), name).map_err(at)
        };
        let (files, moved_files) = (open("files")?, open("aside")?);
        let reference = self.reference.files.iter().filter(|(_, entry)| entry.mode != SUBMODULE);
        let reference = workspace.write_files(host, &workspace.dir.join(FOLDER).join("files"), reference)?;
        let tree = Tree::open(attempt.as_fd(), "tree").map_err(Error::at("tree".into()))?;
        let mut enforced = Enforced {
            guard: self,
            host,
            workspace,
            tree,
            files,
            moved_files,
            reference,
            product_paths,
            held_out,
            left: BTreeSet::new(),
            ignored: BTreeSet::new(),
            moved: Vec::new(),
            written: Vec::new(),
            made: Vec::new(),
        };
        match enforced.apply() {
            Ok(()) => Ok(enforced),
            Err(error) => {
                enforced.restore()?;
                Err(error)
            }
        }
    }

    /// Returns the protected files and links in a worktree, tracked or not.
    fn find(&self, host: &Host, workspace: &Workspace, tree: &Tree) -> Result<BTreeSet<BString>, Error> {
        if self.rules.is_empty() && !self.tracked {
            return Ok(BTreeSet::new());
        }
        let (mut found, mut links) = (BTreeMap::new(), BTreeMap::new());
        walk(host, workspace, tree, &mut |path, kind| {
            if kind == FileType::Directory {
                return;
            }
            if kind == FileType::Symlink {
                // A pathspec that ends with a slash selects only entries of a folder.
                links.insert([as_index_path(path.as_ref()).as_slice(), b"/\x02"].concat().into(), path.clone());
            }
            found.insert(as_index_path(path.as_ref()), path);
        })?;
        if self.tracked {
            let is_tracked =
                |path: &BString| self.reference.base.contains_key(path) || self.reference.files.contains_key(path);
            return Ok(found.into_values().filter(is_tracked).collect());
        }
        let mut selected = BTreeSet::new();
        for paths in [&found, &links] {
            let chosen = self.protection().select(paths.keys().map(|path| (path.as_ref(), FILE)))?;
            selected.extend(chosen.iter().filter_map(|path| paths.get(path).cloned()));
        }
        Ok(selected)
    }

    /// Returns the empty folders of a worktree that the rules protect.
    fn find_empty(&self, host: &Host, workspace: &Workspace, tree: &Tree) -> Result<Vec<BString>, Error> {
        let mut empty = BTreeMap::new();
        if !self.rules.is_empty() {
            walk(host, workspace, tree, &mut |path, kind| {
                if kind == FileType::Directory {
                    empty.insert(as_index_path(path.as_ref()), path);
                }
            })?;
        }
        if empty.is_empty() {
            return Ok(Vec::new());
        }
        let selected = self.protection().select(empty.keys().map(|path| (path.as_ref(), FILE)))?;
        Ok(empty.into_iter().filter(|(path, _)| selected.contains(path)).map(|(_, path)| path).collect())
    }
}

/// Visits the entries of a worktree that may be work.
fn walk(
    host: &Host,
    workspace: &Workspace,
    tree: &Tree,
    visit: &mut dyn FnMut(BString, FileType),
) -> Result<(), Error> {
    // The others are the git directory, submodules, files that every worktree gets, inputs and
    // outputs.
    let excluded = workspace.apart_from_work(host)?;
    let own = [&host.settings.inputs, &host.settings.outputs];
    let mut count = 0;
    let walked = tree.walk(
        &|path: &BStr| path == ".git" || excluded.contains(path) || own.iter().any(|name| path == name.as_str()),
        &mut |path, kind| {
            count += 1;
            if count > MOST_FILES {
                return Err(io::Error::other(format!("more than {MOST_FILES} files")));
            }
            visit(path, kind);
            Ok(())
        },
    );
    walked.map_err(Error::at("tree".into()))
}

/// Returns a path that git accepts in an index, where a component must not be `.git`. Different
/// paths stay different.
fn as_index_path(path: &BStr) -> BString {
    BString::from(
        path.split(|byte| *byte == b'/')
            .map(|part| {
                if part.trim_end_with(|c| c == '\x01').eq_ignore_ascii_case(b".git") {
                    [part, b"\x01"].concat()
                } else {
                    part.to_vec()
                }
            })
            .collect::<Vec<_>>()
            .join(&b'/'),
    )
}

/// Accepts the error of a folder that already exists.
fn exists(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

errors! {
    /// Why protected files cannot have their reference state.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    StillRunning: "a process of the item may still run";
    Moved: "the worker replaced the folder of its attempt";
    Io(String, #[source] io::Error): "cannot read or write {0}";
    #[from] Reference(protected::Error), Merge(merge::Error), Workspace(workspace::Error), HeldOut(held_out::Error),
        Patch(verified_stream::Error);
}

impl Error {
    fn at(path: &BStr) -> impl Fn(io::Error) -> Self + use<> {
        let path = protected::quote_path(path);
        move |error| Self::Io(path.clone(), error)
    }
}
