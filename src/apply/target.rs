//! The target of the changes: finds, checks and moves it.

use std::ops::Range;

use crate::git::hook::Hooks;
use crate::git::merge::{self, Scratch};
use crate::git::refs;
use crate::git::store::Store;
use crate::git::work_tree::{self, Halfway};
use crate::model::digest::Oid;
use crate::model::name::RunId;

use super::hooked::Hooked;
use super::message::{self, Message};
use super::{Applied, Change, Error, Onto, Planned, Request, Step, checkout_error};

/// The target and its state when it was read.
pub(super) enum Target {
    Branch { name: String, tip: Option<Oid> },
    WorkTree { head: Oid, branch: Option<String>, commit: bool },
}

/// The target, and the commit to apply the changes to.
pub(super) struct Found {
    pub(super) onto: Oid,
    target: Target,
}

impl Target {
    /// Reads the target.
    pub(super) fn find(store: &Store, onto: &Onto, base: Oid) -> Result<Found, Error> {
        match onto {
            Onto::Branch(short) => {
                let name = work_tree::branch_ref(store, short)?.ok_or_else(|| Error::BadBranch(short.clone()))?;
                if let Some(place) = work_tree::checked_out(store, &name)? {
                    return Err(Error::CheckedOut(short.clone(), place));
                }
                let tip = refs::read(store, &name)?;
                Ok(Found { onto: tip.unwrap_or(base), target: Self::Branch { name, tip } })
            }
            Onto::WorkTree { commit } => {
                if store.work_dir().is_none() {
                    return Err(Error::Bare);
                }
                let (head, branch) = work_tree::head(store)?.ok_or(Error::Unborn)?;
                Ok(Found { onto: head, target: Self::WorkTree { head, branch, commit: *commit } })
            }
        }
    }
}

impl Found {
    /// Returns true if commits are created here.
    fn commits(&self) -> bool {
        !matches!(self.target, Target::WorkTree { commit: false, .. })
    }

    /// Returns the parent of new commits in a work tree, or `None` for other targets.
    pub(super) fn head(&self) -> Option<Oid> {
        match &self.target {
            Target::WorkTree { head, commit: true, .. } => Some(*head),
            _ => None,
        }
    }

    /// Refuses a message for one commit if there would be several.
    pub(super) fn takes(&self, message: Option<&Message>, steps: &[Step]) -> Result<(), Error> {
        let count = commits(steps).len();
        if message.is_some() && self.commits() && count > 1 { Err(Error::Commits(count)) } else { Ok(()) }
    }

    /// Fails if [`Found::finish`] foreseeably would, and changes nothing.
    pub(super) fn rehearse(&self, store: &Store, scratch: &Scratch, applied: &mut Applied) -> Result<(), Error> {
        let last = applied.steps.last().expect("something changed").tree;
        if self.commits() {
            merge::identified(store).map_err(Error::Commit)?;
        }
        let moved = match &self.target {
            Target::Branch { name, tip } => {
                if tip.is_none() {
                    refs::may_make_branch(store, name, self.onto)?;
                }
                Some(name.as_str())
            }
            Target::WorkTree { head, branch, commit } => {
                work_tree::may_switch(store, scratch, *head, last, Halfway::TakenUp).map_err(checkout_error)?;
                commit.then_some(branch.as_deref().unwrap_or("HEAD"))
            }
        };
        applied.moved = moved.map(short);
        Ok(())
    }

    /// Plans what [`Found::finish`] would do with the steps.
    pub(super) fn plan(
        &self,
        scratch: &Scratch,
        run: &RunId,
        message: Option<&Message>,
        steps: &[Step],
    ) -> Result<Vec<Planned>, Error> {
        let mut before = scratch.tree_of(self.onto)?;
        let planned = commits(steps).into_iter().map(|range| {
            let together = &steps[range];
            let after = together.last().expect("a commit is of some item").tree;
            let files = scratch.changes(std::mem::replace(&mut before, after), after)?;
            let message = self.commits().then(|| message::compose(run, together, message));
            let items = together.iter().map(|step| step.item.clone()).collect();
            let files = files.into_iter().map(|(change, path)| Change { change, path }).collect();
            Ok(Planned { items, message, files })
        });
        planned.collect()
    }

    /// Creates the commits and moves the target.
    pub(super) fn finish(
        &self,
        store: &Store,
        run: &RunId,
        request: &Request,
        own: Option<&Message>,
        applied: &mut Applied,
    ) -> Result<(), Error> {
        let last = applied.steps.last().expect("something changed").tree;
        match &self.target {
            Target::Branch { name, tip } => {
                let tip_now = make(store, run, own, &mut applied.steps, self.onto)?;
                store.sync()?;
                // A crash here leaves unreferenced commits and the old branch.
                refs::move_branch(store, name, *tip, tip_now, &reason(run))?;
                applied.moved = Some(short(name));
            }
            Target::WorkTree { head, commit: false, .. } => {
                // After a crash here, applying the same again finishes the checkout.
                work_tree::switch(store, *head, last, Halfway::TakenUp).map_err(checkout_error)?;
            }
            Target::WorkTree { head, branch, commit: true } => {
                let name = branch.as_deref().unwrap_or("HEAD");
                let hooks = if request.hooks { Hooks::find(store)? } else { None };
                if let Some(hooks) = hooks {
                    Hooked { store, hooks: &hooks, run, own, head: *head }.finish(name, applied)?;
                } else {
                    let tip = make(store, run, own, &mut applied.steps, *head)?;
                    let there = work_tree::switch(store, *head, last, Halfway::TakenUp);
                    let there = there.map_err(checkout_error)?;
                    store.sync()?;
                    // A crash here leaves the changes in the index, ready to commit.
                    if let Err(error) = refs::move_branch(store, name, Some(*head), tip, &reason(run)) {
                        // Another process committed meanwhile: restore the earlier state. If that
                        // also fails, return the first error. Files that already matched stay, with
                        // their changes in the index.
                        if there.is_empty() {
                            let _ = work_tree::switch(store, last, *head, Halfway::Refused);
                        }
                        return Err(error.into());
                    }
                }
                applied.moved = Some(short(name));
            }
        }
        Ok(())
    }
}

/// Returns the reflog message for a branch.
pub(super) fn reason(run: &RunId) -> String {
    format!("handoff: apply {run}")
}

/// Returns the short name of a branch.
pub(super) fn short(name: &str) -> String {
    name.strip_prefix(work_tree::BRANCHES).unwrap_or(name).to_owned()
}

/// Returns the range of steps for each commit.
///
/// A folded item shares the commit of the next one. Unchanged items have no commit.
pub(super) fn commits(steps: &[Step]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut first = 0;
    for (last, step) in steps.iter().enumerate().filter(|(_, step)| !step.folded) {
        if step.changed {
            all.push(first..last + 1);
        }
        first = last + 1;
    }
    all
}

/// Creates the commits and returns the last.
fn make(store: &Store, run: &RunId, own: Option<&Message>, steps: &mut [Step], onto: Oid) -> Result<Oid, Error> {
    let mut tip = onto;
    for range in commits(steps) {
        let together = &mut steps[range];
        let tree = together.last().expect("a commit is of some item").tree;
        tip = merge::commit(store, tree, tip, &message::compose(run, together, own)).map_err(Error::Commit)?;
        together.iter_mut().for_each(|step| step.commit = Some(tip));
    }
    Ok(tip)
}
