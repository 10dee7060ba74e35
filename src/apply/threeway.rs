//! Applies items one after the other, and lets a person resolve what conflicts.
//!
//! Each item that fits is committed as ever. The first that does not is written into index and work tree with its conflicts, and
//! everything stops until the person goes on or gives up. What a commit holds that rests on a resolution is not what an item handed
//! over, and its message does not say so.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::git::conflict::{self, Unmerged};
use crate::git::hook::{self, Hooks};
use crate::git::merge::{self, Scratch};
use crate::git::put_back::{self, Before};
use crate::git::refs;
use crate::git::store::Store;
use crate::git::work_tree::{self, Halfway};
use crate::model::digest::Oid;
use crate::run::Vetted;

use super::hooked;
use super::message::{self, Message};
use super::parts::{self, Parts, Place};
use super::target::{reason, short};
use super::underway::{Now, Underway};
use super::{Applied, Conflict, Error as ApplyError, Step};

/// What items are applied with.
pub(super) struct ThreeWay<'a> {
    store: &'a Store,
    run: &'a Vetted,
    scratch: &'a Scratch,
    parts: &'a Parts,
    hooks: Option<Hooks>,
    state: Underway,
    applied: Applied,
}

impl<'a> ThreeWay<'a> {
    /// Takes items up where they stand.
    pub(super) fn new(
        (store, scratch): (&'a Store, &'a Scratch),
        (run, parts): (&'a Vetted, &'a Parts),
        state: Underway,
        hooks: bool,
    ) -> Result<Self, ApplyError> {
        let hooks = if hooks { Hooks::find(store)? } else { None };
        Ok(Self { store, run, scratch, parts, hooks, state, applied: Applied::default() })
    }

    /// Begins. Stops at the first conflict; after an error, everything is as it was.
    pub(super) fn begin(mut self) -> Result<Applied, ApplyError> {
        // What is committed after a resolution is the index, which must hold nothing else.
        if !conflict::unmerged(self.store)?.is_empty() || Before::look(self.store, self.state.head)?.is_staged() {
            return Err(Error::Staged.into());
        }
        self.state.begin(self.store)?;
        match self.go_on() {
            Ok(()) => Ok(self.applied),
            Err(error) => match undo(self.store, self.state) {
                Ok(_) => Err(error),
                Err(_) => Err(Error::Half(Box::new(error)).into()),
            },
        }
    }

    /// Goes on after a person resolved what conflicted, or after a command was cut short. After an error, it can be called again.
    pub(super) fn resume(mut self) -> Result<Applied, ApplyError> {
        if self.state.aborting {
            return Err(Error::Aborting.into());
        }
        let head = self.head()?;
        match self.state.now.clone() {
            Some(now) if now.commit.is_some_and(|commit| head == commit) => self.is_done(head)?,
            _ if head != self.state.tip => return Err(Error::Moved.into()),
            Some(now) if now.shown || !conflict::unmerged(self.store)?.is_empty() => self.resolved()?,
            Some(now) => self.again(&now)?,
            None => {}
        }
        if Before::look(self.store, self.state.tip)?.is_staged() {
            return Err(Error::Staged.into());
        }
        self.go_on()?;
        Ok(self.applied)
    }

    fn go_on(&mut self) -> Result<(), ApplyError> {
        while let Some(item) = self.state.items.get(self.state.done) {
            if self.head()? != self.state.tip {
                return Err(Error::Moved.into());
            }
            let at = self.parts.iter().position(|(_, part)| part.item() == item);
            let at = at.ok_or_else(|| ApplyError::NoPatch(item.clone()))?;
            let tip = self.scratch.tree_of(self.state.tip)?;
            let (place, theirs) =
                (parts::place(self.scratch, self.run, self.parts, at, tip)?, self.parts[at].1.result());
            match place {
                Place::Fits(tree) => self.put(at, tree, false)?,
                Place::Over(over) => match conflict::with_head(self.store, self.scratch, over, theirs)? {
                    // The conflict is one that a person has resolved with an item before it.
                    Ok(tree) => self.put(at, tree, true)?,
                    Err(unmerged) => return self.stop(at, &unmerged),
                },
            }
        }
        conflict::forget(self.store)?;
        Ok(Underway::end(self.store)?)
    }

    /// Puts what an item makes of `HEAD` into index and work tree, and commits it.
    fn put(&mut self, at: usize, tree: Oid, resolved: bool) -> Result<(), ApplyError> {
        let mut step = self.step(at, tree, resolved);
        if tree == self.scratch.tree_of(self.state.tip)? {
            self.applied.steps.push(Step { changed: false, resolved: false, ..step });
            return self.is_done(self.state.tip);
        }
        let before = Before::at(self.store, self.state.tip)?;
        let touched = before.between(self.state.tip, tree)?;
        hooked::check(self.hooks.as_ref(), &touched)?;
        // What is intended may be undone, files and all: so nobody's changes may be among them.
        let (tip, refused) = (self.state.tip, Halfway::Refused);
        work_tree::may_switch(self.store, self.scratch, (tip, tree), refused).map_err(ApplyError::LocalChanges)?;
        self.intend(Now { to: tree, shown: false, paths: Vec::new(), commit: None })?;
        let made = match work_tree::switch(self.store, tip, tree, refused) {
            Err(error) => Err(ApplyError::LocalChanges(error)),
            Ok(_) => self.commit(&mut step),
        };
        match made {
            Ok(()) => self.applied.steps.push(step),
            // The branch has moved: what is left to be done is written down.
            Err(error) if step.commit.is_some() => return Err(error),
            Err(error) => {
                if !matches!(error, ApplyError::LocalChanges(_))
                    && let Err(left) = before.put_back(&touched)
                {
                    return Err(ApplyError::Left(Box::new(error), left));
                }
                self.state.now = None;
                self.state.save(self.store)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes conflicts into index and work tree, for a person to resolve.
    fn stop(&mut self, at: usize, unmerged: &Unmerged) -> Result<(), ApplyError> {
        let dirty = put_back::modified(self.store, &unmerged.paths)?;
        if !dirty.is_empty() {
            return Err(Error::Modified(dirty).into());
        }
        let (tip, to) = (self.state.tip, unmerged.tree);
        work_tree::may_switch(self.store, self.scratch, (tip, to), Halfway::Refused)
            .map_err(ApplyError::LocalChanges)?;
        let bytes = |path: &PathBuf| path.as_os_str().as_encoded_bytes().to_vec();
        let paths = unmerged.paths.iter().map(bytes).collect();
        self.intend(Now { to, shown: false, paths, commit: None })?;
        if let Err(error) = work_tree::switch(self.store, tip, to, Halfway::Refused) {
            self.state.now = None;
            self.state.save(self.store)?;
            return Err(ApplyError::LocalChanges(error));
        }
        unmerged.mark(self.store)?;
        // A crash before this has it done again.
        if let Some(now) = &mut self.state.now {
            now.shown = true;
        }
        self.state.save(self.store)?;
        let paths = unmerged.paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        self.applied.conflicts.push(Conflict { item: self.parts[at].1.item().clone(), paths, with: Vec::new() });
        self.applied.stopped = true;
        Ok(())
    }

    /// Commits what a person made of the conflicts.
    fn resolved(&mut self) -> Result<(), ApplyError> {
        let left = conflict::unmerged(self.store)?;
        if !left.is_empty() {
            return Err(Error::Unmerged(left).into());
        }
        let item = &self.state.items[self.state.done];
        let at = self.parts.iter().position(|(_, part)| part.item() == item);
        let at = at.ok_or_else(|| ApplyError::NoPatch(item.clone()))?;
        let tree = self.store.git().arg("write-tree").line()?;
        let mut step = self.step(at, merge::oid(&tree)?, true);
        if step.tree == self.scratch.tree_of(self.state.tip)? {
            self.applied.steps.push(Step { changed: false, resolved: false, ..step });
            return self.is_done(self.state.tip);
        }
        let before = Before::at(self.store, self.state.tip)?;
        hooked::check(self.hooks.as_ref(), &before.between(self.state.tip, step.tree)?)?;
        self.commit(&mut step)?;
        self.applied.steps.push(step);
        Ok(())
    }

    /// Undoes what a command that was cut short did for an item, so that it can be done again.
    fn again(&mut self, now: &Now) -> Result<(), ApplyError> {
        let before = Before::at(self.store, self.state.tip)?;
        let touched = touched(&before, self.state.tip, now)?;
        let changed = before.in_none(&touched, &[self.state.tip, now.to])?;
        if !changed.is_empty() {
            return Err(Error::Modified(changed).into());
        }
        before.put_back(&touched)?;
        self.state.now = None;
        Ok(self.state.save(self.store)?)
    }

    /// Commits what is in index and work tree, and moves the branch.
    fn commit(&mut self, step: &mut Step) -> Result<(), ApplyError> {
        let own = self.state.message.as_deref().map(|text| Message::new(&[text])).transpose()?;
        let mut message = message::of(&self.state.run, std::slice::from_ref(step), own.as_ref());
        if let Some(hooks) = &self.hooks {
            message = hooked::passed(self.store, hooks, step.tree, &message, &mut self.applied.said)?;
        }
        let commit = merge::commit(self.store, step.tree, self.state.tip, &message).map_err(ApplyError::Commit)?;
        self.store.sync()?;
        if let Some(now) = &mut self.state.now {
            now.commit = Some(commit);
        }
        self.state.save(self.store)?;
        let branch = self.state.branch.as_deref().unwrap_or("HEAD");
        refs::move_branch(self.store, branch, Some(self.state.tip), commit, &reason(&self.state.run))?;
        self.applied.moved = Some(short(branch));
        step.commit = Some(commit);
        self.is_done(commit)?;
        if let Some(hooks) = &self.hooks {
            self.applied.said.push(hooks.tell(hook::POST_COMMIT).unwrap_or_else(|error| error.to_string()));
        }
        Ok(())
    }

    fn is_done(&mut self, tip: Oid) -> Result<(), ApplyError> {
        self.state.tip = tip;
        self.state.done += 1;
        self.state.now = None;
        Ok(self.state.save(self.store)?)
    }

    fn intend(&mut self, now: Now) -> Result<(), ApplyError> {
        self.state.now = Some(now);
        Ok(self.state.save(self.store)?)
    }

    fn step(&self, at: usize, tree: Oid, resolved: bool) -> Step {
        let (position, part) = &self.parts[at];
        let red = self.run.state.items[*position].red;
        let (item, product) = (part.item().clone(), part.product());
        Step { item, product, tree, changed: true, folded: false, commit: None, red, resolved }
    }

    /// Returns where `HEAD` is, on the branch on which it was.
    fn head(&self) -> Result<Oid, ApplyError> {
        match work_tree::head(self.store)? {
            Some((head, branch)) if branch == self.state.branch => Ok(head),
            _ => Err(Error::Moved.into()),
        }
    }
}

/// Gives up: puts branch, index and work tree back as they were before it began. After an error, it can be called again.
///
/// Returns whether there was anything to put back to: a `HEAD` that somebody moved meanwhile stays, with index and files as they are.
/// What a person changed since in other files than those that conflict is nobody's to throw away: nothing is put back then, however
/// often it was tried before.
pub fn abort(store: &Store, state: Underway) -> Result<bool, ApplyError> {
    if back_from(store, &state)?.is_some() {
        let before = Before::at(store, state.head)?;
        let since = before.in_none(&left_alone(&before, &state)?, &made(&state))?;
        if !since.is_empty() {
            return Err(Error::Since(since).into());
        }
    }
    undo(store, state)
}

/// Puts everything back, whatever was done to files since.
fn undo(store: &Store, mut state: Underway) -> Result<bool, ApplyError> {
    let Some(at) = back_from(store, &state)? else {
        conflict::forget(store)?;
        Underway::end(store)?;
        return Ok(false);
    };
    let before = Before::at(store, state.head)?;
    let changed = changed(&before, &state)?;
    let was = std::mem::replace(&mut state.aborting, true);
    state.save(store)?;
    if let Err(error) = before.put_back(&changed) {
        // Where nothing was put back, it can still go on.
        state.aborting = was || !matches!(error, put_back::Error::Nothing(_));
        state.save(store)?;
        return Err(error.into());
    }
    before.unstage()?;
    if at != state.head {
        let branch = state.branch.as_deref().unwrap_or("HEAD");
        let why = format!("handoff: apply {} given up", state.run);
        refs::move_branch(store, branch, Some(at), state.head, &why)?;
    }
    conflict::forget(store)?;
    Underway::end(store)?;
    Ok(true)
}

/// Returns where `HEAD` is, if that is where this left it.
fn back_from(store: &Store, state: &Underway) -> Result<Option<Oid>, ApplyError> {
    let at = work_tree::head(store)?.filter(|(_, branch)| *branch == state.branch).map(|(head, _)| head);
    let made = state.now.as_ref().and_then(|now| now.commit);
    let known = [Some(state.tip), made, Some(state.head).filter(|_| state.aborting)];
    Ok(at.filter(|at| known.contains(&Some(*at))))
}

/// Returns the paths that may differ from what was there when it began.
fn changed(before: &Before, state: &Underway) -> Result<BTreeSet<PathBuf>, ApplyError> {
    let mut all = before.between(state.head, state.tip)?;
    if let Some(now) = &state.now {
        all.extend(touched(before, state.tip, now)?);
        if let Some(commit) = now.commit {
            all.extend(before.between(state.head, commit)?);
        }
    }
    Ok(all)
}

/// Returns those of them that nobody was to edit: not what conflicts, nor what a command was writing that was cut short.
fn left_alone(before: &Before, state: &Underway) -> Result<BTreeSet<PathBuf>, ApplyError> {
    let mut all = changed(before, state)?;
    if let Some(now) = &state.now {
        let conflicting = now.paths.iter().flat_map(|path| work_tree::paths(path)).collect();
        let open = if now.shown { conflicting } else { touched(before, state.tip, now)? };
        all.retain(|path| !open.contains(path));
    }
    Ok(all)
}

/// Returns what files may be as in that were left alone.
fn made(state: &Underway) -> Vec<Oid> {
    let now = state.now.iter().flat_map(|now| [Some(now.to), now.commit]).flatten();
    [state.tip, state.head].into_iter().chain(now).collect()
}

/// Returns the paths that may differ from what is at a commit because of what was being done with an item.
fn touched(before: &Before, tip: Oid, now: &Now) -> Result<BTreeSet<PathBuf>, ApplyError> {
    let mut all = before.between(tip, now.to)?;
    for path in &now.paths {
        all.extend(work_tree::paths(path));
    }
    Ok(all)
}

/// Why items cannot be applied one after the other.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("something is staged, and with --3way what is staged is what is committed; nothing was changed")]
    Staged,
    #[error("there are local changes in {}", list(.0))]
    Modified(BTreeSet<PathBuf>),
    #[error("changed since by hand, and giving up would lose that: {}; nothing was put back", list(.0))]
    Since(BTreeSet<PathBuf>),
    #[error("not resolved yet: {}", list(.0))]
    Unmerged(BTreeSet<PathBuf>),
    #[error("HEAD is not where it was when this stopped")]
    Moved,
    #[error("this was being given up, and cannot go on")]
    Aborting,
    #[error("there is nothing to go on with, and nothing to give up")]
    Nothing,
    #[error("{0}; but what was done before could not be undone")]
    Half(Box<ApplyError>),
}

fn list(paths: &BTreeSet<PathBuf>) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
