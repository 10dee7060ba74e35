//! Commits that the person's hooks see before they are made.
//!
//! As with `git commit`, index and work tree are as the commit has them while its hooks run. The branch moves once, when all of them
//! have passed: until then everything can be put back.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use crate::git::hook::{self, Hooks};
use crate::git::merge;
use crate::git::put_back::{self, Before};
use crate::git::refs;
use crate::git::store::Store;
use crate::git::work_tree::{self, Halfway};
use crate::model::digest::Oid;
use crate::model::name::RunId;

use super::message::{self, Message};
use super::target::{commits, reason};
use super::{Applied, Error, Step};

/// Where git has the message of the commit that is being made.
const MESSAGE_FILE: &str = "COMMIT_EDITMSG";

/// What is committed, and onto what.
pub(super) struct Hooked<'a> {
    pub(super) store: &'a Store,
    pub(super) hooks: &'a Hooks,
    pub(super) run: &'a RunId,
    pub(super) own: Option<&'a Message>,
    pub(super) head: Oid,
}

/// What was changed so far, and how to undo it.
pub(super) struct Changed {
    before: Before,
    touched: BTreeSet<PathBuf>,
    /// What the files were already: only the index was told of it.
    there: BTreeSet<PathBuf>,
}

impl Changed {
    /// Puts everything back. `because` tells more than what fails here, unless something is left.
    pub(super) fn back(&self, because: Error) -> Error {
        let back = self.before.put_back(&self.touched);
        let back = back.and_then(|()| if self.there.is_empty() { Ok(()) } else { self.before.unstage() });
        match back {
            Ok(()) => because,
            Err(left) => Error::Left(Box::new(because), left),
        }
    }
}

impl Hooked<'_> {
    /// Makes the commits, moves the branch, and tells the hook that is to hear of it.
    pub(super) fn finish(&self, branch: &str, applied: &mut Applied) -> Result<(), Error> {
        let (tip, changed) = self.make(&mut applied.steps, &mut applied.said)?;
        self.store.sync()?;
        // A crash here leaves the changes in the index, for the user to commit.
        if let Err(error) = refs::move_branch(self.store, branch, Some(self.head), tip, &reason(self.run)) {
            return Err(changed.back(error.into()));
        }
        // The commits are made, whatever it says.
        applied.said.push(self.hooks.tell(hook::POST_COMMIT).unwrap_or_else(|error| error.to_string()));
        Ok(())
    }

    /// Puts steps into index and work tree, commit by commit, and makes the commits; returns the last, that nothing points at yet.
    ///
    /// After an error, everything is as it was.
    fn make(&self, steps: &mut [Step], said: &mut Vec<String>) -> Result<(Oid, Changed), Error> {
        // Where conflicts are left, the index is no tree.
        let before = Before::look(self.store, self.head).map_err(|error| match error {
            put_back::Error::Git(inner) => Error::LocalChanges(inner.into()),
            other => other.into(),
        })?;
        let mut changed = Changed { before, touched: BTreeSet::new(), there: BTreeSet::new() };
        match self.make_all(steps, &mut changed, said) {
            Ok(tip) => Ok((tip, changed)),
            Err(error) => Err(changed.back(error)),
        }
    }

    fn make_all(&self, steps: &mut [Step], changed: &mut Changed, said: &mut Vec<String>) -> Result<Oid, Error> {
        let (mut at, mut tip) = (self.head, self.head);
        let ranges = commits(steps);
        for range in &ranges {
            let tree = steps[range.end - 1].tree;
            check(Some(self.hooks), &changed.before.between(self.head, tree)?)?;
        }
        for range in ranges {
            let together = &mut steps[range];
            let tree = together.last().expect("a commit is of some item").tree;
            let there = work_tree::switch(self.store, at, tree, Halfway::TakenUp).map_err(Error::LocalChanges)?;
            changed.touched.extend(changed.before.between(at, tree)?.difference(&there).cloned());
            changed.there.extend(there);
            at = tree;
            let message = passed(self.store, self.hooks, tree, &message::of(self.run, together, self.own), said)?;
            tip = merge::commit(self.store, tree, tip, &message).map_err(Error::Commit)?;
            together.iter_mut().for_each(|step| step.commit = Some(tip));
        }
        Ok(tip)
    }
}

/// Refuses to run hooks that some of these paths are.
pub(super) fn check(hooks: Option<&Hooks>, changed: &BTreeSet<PathBuf>) -> Result<(), Error> {
    match hooks.and_then(|hooks| changed.iter().find(|path| hooks.is_own(path))) {
        Some(path) => Err(Error::OwnHooks(path.clone())),
        None => Ok(()),
    }
}

/// Shows the hooks a tree and a message; returns the message as they leave it.
pub(super) fn passed(
    store: &Store,
    hooks: &Hooks,
    tree: Oid,
    message: &str,
    said: &mut Vec<String>,
) -> Result<String, Error> {
    let path = store.git_dir().join(MESSAGE_FILE);
    fs::write(&path, message).map_err(Error::MessageFile)?;
    if !hooks.are_same()? {
        return Err(Error::OtherHooks);
    }
    hooks.show(tree)?;
    let file = path.as_os_str();
    for (name, arguments) in
        [(hook::PRE_COMMIT, &[][..]), (hook::PREPARE_MESSAGE, &[file, OsStr::new("message")]), (hook::MESSAGE, &[file])]
    {
        said.push(hooks.run(name, arguments)?);
        // A commit that names a product has that product's bytes, and no others.
        if hooks.shown()? != tree.to_string() {
            return Err(Error::HookIndex(name));
        }
    }
    let left = fs::read(&path).map_err(Error::MessageFile)?;
    if left == message.as_bytes() {
        return Ok(message.to_owned());
    }
    let left = message::stripped(&String::from_utf8_lossy(&left));
    if message::claims(&left) == message::claims(message) { Ok(left + "\n") } else { Err(Error::HookTrailers) }
}
