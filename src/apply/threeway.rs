//! Applies items in sequence with `git cherry-pick`, so that the user can resolve conflicts.
//!
//! A resolved commit is not the item's product, and its message does not claim so. All state
//! between two commands is git's own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::git::cherry_pick::{self, CherryPick};
use crate::git::hook::{self, Hooks};
use crate::git::merge;
use crate::git::program;
use crate::git::store::Store;
use crate::git::work_tree::{self, Halfway};
use crate::model::digest::Oid;
use crate::model::name::RunId;

use super::message::{self, Named};
use super::picks::Selection;
use super::target::short;
use super::{Applied, Conflict, Error as ApplyError, Step, checkout_error, hooked, picks};

/// An `apply --3way` in progress, and its next commit.
pub struct Underway {
    pick: CherryPick,
    next: Named,
}

impl Underway {
    /// Reads the `apply --3way` in progress in this work tree, or returns `None`.
    pub fn read(store: &Store) -> Result<Option<Self>, ApplyError> {
        let Some(pick) = CherryPick::read(store)? else { return Ok(None) };
        Ok(message::read_trailers(&pick.message).map(|next| Self { pick, next }))
    }

    /// Returns the run.
    pub fn run(&self) -> &RunId {
        &self.next.run
    }
}

/// Starts, and stops at the first conflict. After an error nothing has changed.
pub(super) fn begin(selection: &Selection<'_>, hooks: bool) -> Result<Applied, ApplyError> {
    let Selection { store, scratch, head, .. } = *selection;
    if CherryPick::read(store)?.is_some() {
        return Err(Error::Other.into());
    }
    if cherry_pick::is_staged(store)? {
        return Err(Error::Staged.into());
    }
    let picks = picks::make(selection)?;
    let mut picking = Picking::new(store, hooks)?;
    picking.applied.steps = picks.unchanged;
    let Some(last) = picks.last else { return Ok(picking.applied) };
    hooked::check(picking.hooks.as_ref(), &picks.touched)?;
    // git itself would overwrite ignored files, and refuse midway at files with local changes.
    work_tree::may_switch(store, scratch, head, last, Halfway::Refused).map_err(checkout_error)?;
    store.sync()?;
    let commits = picks.commits.iter().map(Oid::to_string).collect();
    match picking.go_on(commits) {
        Ok(()) => Ok(picking.applied),
        Err(error) => match Underway::read(store) {
            Ok(Some(_)) if abort(store).is_err() => Err(Error::Half(Box::new(error)).into()),
            _ => Err(error),
        },
    }
}

/// Continues after the user resolved a conflict. Can be called again after an error.
///
/// Also returns the run.
pub fn resume(store: &Store, hooks: bool) -> Result<(RunId, Applied), ApplyError> {
    let underway = Underway::read(store)?.ok_or(Error::Nothing)?;
    if !underway.pick.is_at(head(store)?) {
        return Err(Error::Moved.into());
    }
    let left = cherry_pick::unmerged(store)?;
    if !left.is_empty() {
        return Err(Error::Unmerged(left).into());
    }
    let mut picking = Picking::new(store, hooks)?;
    let is_empty = underway.pick.is_shown && !cherry_pick::is_staged(store)?;
    let argument = if is_empty { picking.skip(&underway.next)? } else { "--continue" };
    picking.go_on(vec![argument.to_owned()])?;
    Ok((underway.next.run, picking.applied))
}

/// Aborts: restores branch, index and files. Can be called again after an error.
///
/// Returns the run, and true if everything was restored. If `HEAD` moved since, leaves it with
/// index and files.
pub fn abort(store: &Store) -> Result<(RunId, bool), ApplyError> {
    let Underway { pick, next } = Underway::read(store)?.ok_or(Error::Nothing)?;
    let head = head(store)?;
    if !pick.is_at(head) {
        cherry_pick::forget(store)?;
        return Ok((next.run, false));
    }
    let changed = pick.changed_by_hand(store, head)?;
    if !changed.is_empty() {
        return Err(Error::Since(changed).into());
    }
    pick.give_up(store, &format!("handoff: apply {} given up", next.run))?;
    Ok((next.run, true))
}

/// A `git cherry-pick` and its continuations.
struct Picking<'a> {
    store: &'a Store,
    hooks: Option<Hooks>,
    applied: Applied,
}

impl<'a> Picking<'a> {
    fn new(store: &'a Store, hooks: bool) -> Result<Self, ApplyError> {
        let hooks = if hooks { Hooks::find(store)? } else { None };
        Ok(Self { store, hooks, applied: Applied::default() })
    }

    /// Picks commits until done or a conflict. Skips commits that would be empty.
    fn go_on(&mut self, mut arguments: Vec<String>) -> Result<(), ApplyError> {
        let from = head(self.store)?;
        while let Err(error) = cherry_pick::run(self.store, self.hooks.as_ref(), &arguments) {
            let underway = Underway::read(self.store)?.filter(|underway| underway.pick.is_shown);
            let open = cherry_pick::unmerged(self.store)?;
            match underway {
                Some(Underway { next, .. }) if !open.is_empty() => {
                    self.stop(next, &open)?;
                    break;
                }
                Some(Underway { next, .. }) if !cherry_pick::is_staged(self.store)? => {
                    arguments = vec![self.skip(&next)?.to_owned()];
                }
                Some(_) => return Err(self.failure(error, true)),
                None => return Err(self.undo(error, &arguments)?),
            }
        }
        self.read_commits(from)
    }

    /// Records that an item changes nothing. Returns the option for git.
    fn skip(&mut self, item: &Named) -> Result<&'static str, ApplyError> {
        let tree = merge::oid(&self.store.git().args(["rev-parse", "HEAD^{tree}"]).line()?)?;
        self.applied.steps.push(Step { changed: false, resolved: false, ..item.step(tree) });
        Ok("--skip")
    }

    /// Stops at a conflict: the commit will contain the user's resolution.
    fn stop(&mut self, item: Named, open: &BTreeSet<PathBuf>) -> Result<(), ApplyError> {
        if !item.resolved {
            cherry_pick::set_message(self.store, &message::as_resolved(&cherry_pick::message(self.store)?, &item))?;
        }
        let paths = open.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        self.applied.conflicts.push(Conflict { item: item.item, paths, with: Vec::new() });
        self.applied.stopped = true;
        Ok(())
    }

    /// Reads the items of the new commits from their messages.
    fn read_commits(&mut self, from: Oid) -> Result<(), ApplyError> {
        let listed = ["log", "-z", "--reverse", "--first-parent", "--format=%H %T%n%B"];
        let listed = self.store.git().args(listed).arg(format!("{from}..HEAD")).run()?;
        for commit in String::from_utf8_lossy(&listed).split('\0') {
            let Some((names, message)) = commit.split_once('\n') else { continue };
            let Some((id, tree)) = names.split_once(' ') else { continue };
            let Some(item) = message::read_trailers(message) else { continue };
            let id = Some(merge::oid(id)?);
            self.applied.steps.push(Step { commit: id, ..item.step(merge::oid(tree)?) });
        }
        if self.applied.steps.iter().any(|step| step.commit.is_some()) {
            let branch = work_tree::head(self.store)?.and_then(|(_, branch)| branch);
            self.applied.moved = Some(short(branch.as_deref().unwrap_or("HEAD")));
        }
        Ok(())
    }

    /// Undoes what git wrote before it failed without a conflict, and returns the reason.
    fn undo(&self, error: cherry_pick::Error, arguments: &[String]) -> Result<ApplyError, ApplyError> {
        let next = Underway::read(self.store)?.map(|underway| underway.pick.commit);
        match (error, next.or_else(|| arguments.first()?.parse().ok())) {
            (cherry_pick::Error::Git(cause), Some(commit)) if !work_tree::is_refusal(&cause) => {
                Ok(work_tree::Error::from(cherry_pick::undo(self.store, commit, cause)?).into())
            }
            (error, _) => Ok(self.failure(error, false)),
        }
    }

    /// Returns the reason why git failed without a commit or conflict.
    fn failure(&self, error: cherry_pick::Error, is_shown: bool) -> ApplyError {
        let cherry_pick::Error::Git(program::Error::Failed { call, code, stderr }) = error else { return error.into() };
        let git = program::Error::Failed { call, code, stderr: stderr.clone() };
        match () {
            () if stderr.contains("would be overwritten by") => ApplyError::LocalChanges(git.into()),
            () if is_shown && self.hooks.is_some() && !stderr.contains("tell me who you are") => {
                hook::Error::Refused { name: "git commit", code, output: stderr }.into()
            }
            () => ApplyError::Commit(git),
        }
    }
}

fn head(store: &Store) -> Result<Oid, ApplyError> {
    Ok(work_tree::head(store)?.ok_or(ApplyError::Unborn)?.0)
}

errors! {
    /// Why items cannot be applied in sequence.
    #[derive(Debug, thiserror::Error)] pub enum Error = "apply";
    Staged "staged": "changes are staged, which --3way would commit as well; nothing was changed";
    Since(BTreeSet<PathBuf>) "local-changes":
        "changed by hand since, and --abort would lose that: {}; nothing was restored" [list(.0)];
    Unmerged(BTreeSet<PathBuf>) "unmerged": "not resolved yet: {}" [list(.0)];
    Moved "moved": "HEAD has moved since this stopped";
    Underway(RunId) "underway": "conflicts of the run {0} are being resolved in this work tree";
    Other "underway": "a cherry-pick of other commits is in progress in this work tree";
    Nothing "nothing-underway": "there is nothing to continue or abort";
    Half(Box<ApplyError>) "underway": "{0}; and earlier steps could not be undone";
    #[from "apply"] CherryPick(cherry_pick::Error);
}

impl From<cherry_pick::Error> for ApplyError {
    fn from(error: cherry_pick::Error) -> Self {
        Error::from(error).into()
    }
}

fn list(paths: &BTreeSet<PathBuf>) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
