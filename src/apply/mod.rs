//! Applies the changes of a run's items to a commit, a branch or the work tree.
//!
//! Everything is merged as trees: an item's result is the run's base with its patch, and the
//! results are merged over that base. So an item that contains another's patch merges like one that
//! does not. The total is then merged with the target. Nothing moves before everything has merged.

pub mod answer;
pub mod compose;
mod hooked;
pub mod message;
mod parts;
mod picks;
pub mod reproduce;
mod run_by_git;
mod run_by_itself;
pub mod submodules;
mod target;
pub mod threeway;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use crate::git::hook;
use crate::git::merge::{self, Scratch};
use crate::git::program;
use crate::git::protected;
use crate::git::refs;
use crate::git::restore_worktree;
use crate::git::store::{self, Store};
use crate::git::verified_stream;
use crate::git::work_tree;
use crate::model::digest::{Digest, Oid};
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::printable::first_of;
use crate::model::protected::{ProtectedChange, in_words};
use crate::run::query::{VerifiedRun, View};

use message::Message;
use parts::Parts;
use submodules::Left;
use target::Target;
use threeway::Underway;

/// The most files that a refusal names.
const NAMED: usize = 20;

/// The trailer that names a run.
pub const RUN: &str = "Handoff-Run";

/// The trailer that names an item of that run.
pub const ITEM: &str = "Handoff-Item";

/// The trailer with the digest of that item's patch.
pub const PRODUCT: &str = "Handoff-Product";

/// The trailer that names an item and its patch if a person resolved its conflicts, so that the
/// commit contains that person's bytes.
pub const RESOLVED: &str = "Handoff-Resolved";

/// The items to apply and the target.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Request {
    /// Only this item; otherwise every item that is done.
    pub item: Option<ItemIndex>,
    /// The target.
    pub onto: Onto,
    /// True to apply items whose check failed.
    pub allow_red: bool,
    /// True to leave out the changes to protected files.
    pub without_protected: bool,
    /// True to apply files that a program runs by itself, such as hooks.
    pub with_hooks: bool,
    /// The text of the commit; by default the goal of a single item, or else its name. Our trailers
    /// are added in either case.
    pub message: Option<Message>,
    /// True to run the user's commit hooks for a commit onto `HEAD`.
    pub hooks: bool,
    /// True to leave conflicts for the user to resolve.
    pub three_way: bool,
    /// True to plan and change nothing.
    pub dry_run: bool,
}

/// The target of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onto {
    /// A branch that is not checked out, with a commit for each item. Created at the run's base if
    /// it does not exist.
    Branch(String),
    /// The index and the work tree.
    WorkTree {
        /// True to commit them onto `HEAD` as well, with a commit for each item.
        commit: bool,
    },
}

/// One item that was applied.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
pub struct Step {
    /// The item.
    pub item: ItemId,
    /// The patch.
    pub product: Digest,
    /// The tree after it.
    #[serde(skip)]
    pub tree: Oid,
    /// True if it changed anything.
    pub changed: bool,
    /// True if it merges only together with the next item, because the target already has later
    /// changes.
    #[serde(skip)]
    pub folded: bool,
    /// Its new commit.
    pub commit: Option<Oid>,
    /// True if its check failed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// Its applied changes to protected files that a check judged; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub judged: Vec<ProtectedChange>,
    /// True if a person resolved its conflicts, or its changes to protected files are left out;
    /// absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resolved: bool,
    /// True if its changes to protected files are left out; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_protected: bool,
}

/// An item with conflicts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Conflict {
    /// The item.
    pub item: ItemId,
    /// The paths that it and the target change differently.
    pub paths: Vec<String>,
    /// The earlier items that change any of these paths.
    pub with: Vec<ItemId>,
}

/// Items that would share a commit, with their changes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Planned {
    /// The items.
    pub items: Vec<ItemId>,
    /// The message of their commit, or `None` if there would be no commit.
    pub message: Option<String>,
    /// The files that would change.
    pub files: Vec<Change>,
}

/// A file that would change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Change {
    /// git's status letter.
    pub change: char,
    /// The path.
    pub path: String,
}

/// The result of applying a run.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The items in the order of application.
    pub steps: Vec<Step>,
    /// The conflicting items. If there are any, nothing was changed unless `stopped` is true.
    pub conflicts: Vec<Conflict>,
    /// True if it stopped for a person to resolve a conflict.
    pub stopped: bool,
    /// The short name of the branch that moved, or `HEAD` if it is detached.
    pub moved: Option<String>,
    /// The output of hooks.
    pub messages: Vec<String>,
    /// The plan of a dry run.
    pub planned: Option<Vec<Planned>>,
    /// Changes to submodules, which are not applied.
    pub submodules: Vec<Left>,
}

/// Applies a run's patches, or plans that. After an error or a conflict nothing has changed.
pub fn apply(store: &Store, run: &VerifiedRun, request: &Request) -> Result<Applied, Error> {
    let view: &View = run;
    if let Some(underway) = Underway::read(store)? {
        return Err(threeway::Error::Underway(underway.run().clone()).into());
    }
    let chosen = parts::chosen(view, request.item)?;
    if !request.allow_red {
        refuse_red(view, parts::red(view, &chosen, request.without_protected))?;
    }
    let base = view.state.submitted.base;
    if !store.contains(base) {
        return Err(Error::NoBase(base));
    }
    let target = Target::find(store, &request.onto, base)?;
    let scratch = if request.dry_run { Scratch::isolated(store, base)? } else { Scratch::new(store, base)? };
    let parts = parts::read(store, &scratch, run, &chosen, request.without_protected)?;
    let items = request.item.map_or_else(|| parts::done(view).collect(), |at| vec![at]);
    let submodules = submodules::left(store, view, scratch.base(), &items)?;
    let mut applied = parts::join(&scratch, view, &parts)?;
    if applied.conflicts.is_empty() {
        let onto = scratch.tree_of(target.onto)?;
        applied = parts::transplant(&scratch, view, &parts, applied, onto)?;
    }
    if !request.with_hooks {
        refuse_hooks(store, &scratch, view, (&parts, &applied), target.onto)?;
    }
    let goal = Some(&chosen).filter(|chosen| chosen.len() == 1).and_then(|_| view.goal());
    // A goal that reads as a trailer of ours is no message.
    let goal = goal.and_then(|goal| Message::new(&[goal]).ok());
    let message = request.message.as_ref().or(goal.as_ref());
    if let (false, false, true, Some(head)) =
        (applied.conflicts.is_empty(), request.dry_run, request.three_way, target.head())
    {
        let count = chosen.len();
        if message.is_some() && count > 1 {
            return Err(Error::Commits(count));
        }
        let selection = picks::Selection { store, scratch: &scratch, run, parts: &parts, head, message };
        let begun = threeway::begin(&selection, request.hooks)?;
        return Ok(Applied { submodules, ..begun });
    }
    let changed = applied.conflicts.is_empty() && applied.steps.iter().any(|step| step.changed);
    if changed {
        target.takes(message, &applied.steps)?;
    }
    if request.dry_run {
        if changed {
            target.rehearse(store, &scratch, &mut applied)?;
        }
        applied.planned =
            Some(if changed { target.plan(&scratch, &view.run, message, &applied.steps)? } else { Vec::new() });
    } else if changed {
        target.finish(store, &view.run, request, message, &mut applied)?;
    }
    Ok(Applied { submodules, ..applied })
}

/// Fails if there are red items.
fn refuse_red(view: &View, red: Vec<ItemId>) -> Result<(), Error> {
    if red.is_empty() {
        return Ok(());
    }
    let places = red.iter().map(|id| view.state.graph.position(id).expect("the run has it"));
    let items: Vec<_> = places.map(|at| &view.state.items[at]).collect();
    if items.iter().all(|item| item.clearable) {
        let changes = items.iter().flat_map(|item| item.protected.clone()).collect();
        return Err(Error::ProtectedChanged(red, changes));
    }
    Err(Error::Red(red))
}

/// Fails if the changes affect files that a program runs by itself.
fn refuse_hooks(
    store: &Store,
    scratch: &Scratch,
    view: &View,
    (parts, applied): (&Parts, &Applied),
    onto: Oid,
) -> Result<(), Error> {
    let by_git = run_by_git::places(store)?;
    let mut found = BTreeSet::new();
    let mut look = |before, after| -> Result<(), Error> {
        found.extend(run_by_itself::find(scratch, before, after, &scratch.changes(before, after)?, &by_git)?);
        Ok(())
    };
    match applied.steps.last() {
        Some(last) if applied.conflicts.is_empty() => look(scratch.tree_of(onto)?, last.tree)?,
        // The resolution by a person is not known yet.
        _ => {
            for nth in 0..parts.len() {
                if parts[nth].1.is_chosen() {
                    look(parts::before(scratch, view, parts, nth)?, parts[nth].1.result())?;
                }
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Error::RunByItself(found.into_iter().collect())) }
}

/// Returns the error of a checkout: local changes are named only if they are the reason.
fn checkout_error(error: work_tree::Error) -> Error {
    use work_tree::Error::{Git, Marked, Refused, Untracked};
    match error {
        Untracked(_) | Marked(..) | Refused(_) => Error::LocalChanges(error),
        Git(inner) if work_tree::is_refusal(&inner) => Error::LocalChanges(Refused(inner)),
        other => Error::WorkTree(other),
    }
}

/// Names items as the subject of a sentence.
fn are(items: &[ItemId]) -> String {
    let names: Vec<String> = items.iter().map(|item| format!("{:?}", item.as_str())).collect();
    format!("{} {}", names.join(", "), if items.len() == 1 { "is" } else { "are" })
}

errors! {
    /// Why a run's patches were not applied.
    #[derive(Debug, thiserror::Error)] pub enum Error = "apply";
    NoBase(Oid) "no-base": "the run's base commit {0} is not in this repository";
    NoPatch(ItemId) "no-patch": "the item {0:?} is done but changed no tracked file: it has no patch";
    NotDone(ItemId, &'static str) "not-done": "the item {0:?} is {1}; only done items can be applied";
    Red(Vec<ItemId>) "red": "{} red: the check failed; nothing was changed" [are(.0)];
    ProtectedChanged(Vec<ItemId>, Vec<ProtectedChange>) "red":
        "{} red because of changes to protected files: {}; nothing was changed" [are(.0), in_words(.1)];
    RunByItself(Vec<String>) "runs-by-itself":
        "programs run these files by themselves: {}; nothing was changed" [first_of(.0, NAMED)];
    Altered(ItemId, #[source] Box<verified_stream::Error>) "altered" 3:
        "the patch of {0:?} in the object database is not the one in its entry";
    Incomposable(ItemId, String) "conflict":
        "the products cannot be composed: {0:?} conflicts with earlier items in {1}";
    Patch(ItemId, #[source] program::Error): "the patch of {0:?} does not apply to the run's base";
    BadBranch(String) "bad-branch": "{0:?} is not the name of a branch";
    CheckedOut(String, String) "checked-out": "the branch {0:?} is checked out in {1}";
    Bare "bare": "cannot apply: a bare repository has no work tree";
    Unborn "unborn": "HEAD does not point at a commit yet";
    LocalChanges(#[source] work_tree::Error) "local-changes": "local changes are in the way; nothing was changed";
    Hook(#[from] hook::Error): "a hook refused the commit; nothing was changed";
    HookIndex(&'static str) "hook-changed":
        "the hook {0} changed what would be committed, and a commit that names a product has just its bytes; nothing was changed";
    HookTrailers "hook-changed":
        "a hook changed the lines that name the run, the item and the product; nothing was changed";
    OwnHooks(PathBuf) "own-hooks":
        "{0:?} is one of the hooks that would be run, or leads to one, and what is applied changes it; nothing was changed";
    OtherHooks "own-hooks": "the changes affect the configuration of hooks; nothing was changed";
    MessageFile(#[source] io::Error): "cannot write or read the commit message";
    Left(Box<Error>, restore_worktree::Error): "{0}; and the index and work tree could not be restored: {1}";
    Commits(usize) "several-commits": "there would be {0} commits, but the message is for one; nothing was changed";
    Commit(#[source] program::Error): "cannot create the commit";
    #[from] ThreeWay(threeway::Error);
    #[from "apply"] Protected(protected::Error), PutBack(restore_worktree::Error), Git(program::Error),
        Merge(merge::Error), WorkTree(work_tree::Error), Store(store::Error), Ref(refs::Error);
    #[from "bad-message"] Message(message::Error);
}
