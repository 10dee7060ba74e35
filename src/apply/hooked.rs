//! Creates commits with the user's hooks.
//!
//! As in `git commit`, index and work tree match the commit while its hooks run. The branch moves
//! once, after all hooks passed; until then everything can be restored.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use crate::git::hook::{self, Hooks};
use crate::git::merge;
use crate::git::refs;
use crate::git::restore_worktree::{self, Before};
use crate::git::store::Store;
use crate::git::work_tree::{self, Halfway};
use crate::model::digest::Oid;
use crate::model::name::RunId;

use super::message::{self, Message};
use super::target::{commits, reason};
use super::{Applied, Error, Step, checkout_error};

/// git's file for the message of the commit in progress.
const MESSAGE_FILE: &str = "COMMIT_EDITMSG";

/// The commits to create and their parent.
pub(super) struct Hooked<'a> {
    pub(super) store: &'a Store,
    pub(super) hooks: &'a Hooks,
    pub(super) run: &'a RunId,
    pub(super) own: Option<&'a Message>,
    pub(super) head: Oid,
}

/// The changes made so far, to undo them.
pub(super) struct Changed {
    before: Before,
    touched: BTreeSet<PathBuf>,
    /// Files that already had their target content: only the index changed.
    there: BTreeSet<PathBuf>,
}

impl Changed {
    /// Restores everything. Returns `because`, unless something could not be restored.
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
    /// Creates the commits, moves the branch and runs `post-commit`.
    pub(super) fn finish(&self, branch: &str, applied: &mut Applied) -> Result<(), Error> {
        let (tip, changed) = self.make(&mut applied.steps, &mut applied.messages)?;
        self.store.sync()?;
        // A crash here leaves the changes in the index, ready to commit.
        if let Err(error) = refs::move_branch(self.store, branch, Some(self.head), tip, &reason(self.run)) {
            return Err(changed.back(error.into()));
        }
        // The commits exist, whatever this hook returns.
        applied.messages.push(self.hooks.tell(hook::POST_COMMIT).unwrap_or_else(|error| error.to_string()));
        Ok(())
    }

    /// Applies the steps commit by commit to index and work tree and creates the commits. Returns
    /// the last, to which no ref points yet.
    ///
    /// After an error everything is restored.
    fn make(&self, steps: &mut [Step], messages: &mut Vec<String>) -> Result<(Oid, Changed), Error> {
        // An index with conflicts has no tree.
        let before = Before::look(self.store, self.head).map_err(|error| match error {
            restore_worktree::Error::Git(inner) => checkout_error(inner.into()),
            other => other.into(),
        })?;
        let mut changed = Changed { before, touched: BTreeSet::new(), there: BTreeSet::new() };
        match self.make_all(steps, &mut changed, messages) {
            Ok(tip) => Ok((tip, changed)),
            Err(error) => Err(changed.back(error)),
        }
    }

    fn make_all(&self, steps: &mut [Step], changed: &mut Changed, messages: &mut Vec<String>) -> Result<Oid, Error> {
        let (mut at, mut tip) = (self.head, self.head);
        let ranges = commits(steps);
        for range in &ranges {
            let tree = steps[range.end - 1].tree;
            check(Some(self.hooks), &changed.before.between(self.head, tree)?)?;
        }
        for range in ranges {
            let together = &mut steps[range];
            let tree = together.last().expect("a commit is of some item").tree;
            let there = work_tree::switch(self.store, at, tree, Halfway::TakenUp).map_err(checkout_error)?;
            changed.touched.extend(changed.before.between(at, tree)?.difference(&there).cloned());
            changed.there.extend(there);
            at = tree;
            let message =
                passed(self.store, self.hooks, tree, &message::compose(self.run, together, self.own), messages)?;
            tip = merge::commit(self.store, tree, tip, &message).map_err(Error::Commit)?;
            together.iter_mut().for_each(|step| step.commit = Some(tip));
        }
        Ok(tip)
    }
}

/// Refuses to run hooks that the changes would modify.
pub(super) fn check(hooks: Option<&Hooks>, changed: &BTreeSet<PathBuf>) -> Result<(), Error> {
    match hooks.and_then(|hooks| changed.iter().find(|path| hooks.is_own(path))) {
        Some(path) => Err(Error::OwnHooks(path.clone())),
        None => Ok(()),
    }
}

/// Runs the hooks on a tree and a message. Returns the message as they leave it.
pub(super) fn passed(
    store: &Store,
    hooks: &Hooks,
    tree: Oid,
    message: &str,
    messages: &mut Vec<String>,
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
        messages.push(hooks.run(name, arguments)?);
        // A commit that names a product must contain exactly its bytes.
        if hooks.written_tree()? != tree.to_string() {
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
