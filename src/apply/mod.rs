//! Puts what a run's items changed onto a commit, a branch or the work tree.
//!
//! Everything is merged as trees, in memory: an item's result is the run's base with its patch, and the results are merged
//! over that base. So an item that built on another's patch, and therefore contains it, fits as well as one that did not.
//! What all of them come to is then merged with what stands at the target. Nothing moves before all of it has merged.

pub mod answer;
pub mod compose;
mod hooked;
pub mod message;
mod parts;
mod picks;
pub mod submodules;
mod target;
pub mod threeway;

use std::io;
use std::path::PathBuf;

use crate::git::checked;
use crate::git::hook;
use crate::git::merge::{self, Scratch};
use crate::git::program;
use crate::git::put_back;
use crate::git::refs;
use crate::git::store::{self, Store};
use crate::git::work_tree;
use crate::model::digest::{Digest, Oid};
use crate::model::name::ItemId;
use crate::run::{VerifiedRun, View};

use message::Message;
use submodules::Left;
use target::Target;
use threeway::Underway;

/// The trailer by which a commit names a run.
pub const RUN: &str = "Handoff-Run";

/// The trailer by which it names an item of that run.
pub const ITEM: &str = "Handoff-Item";

/// The trailer by which it names the digest of that item's patch.
pub const PRODUCT: &str = "Handoff-Product";

/// The trailer by which a commit names an item, and its patch, that a person resolved conflicts of: its bytes are the person's.
pub const RESOLVED: &str = "Handoff-Resolved";

/// What to apply, and onto what.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Request {
    /// Only this item, by position; otherwise every item that is done.
    pub item: Option<usize>,
    /// Where it goes.
    pub onto: Onto,
    /// Whether it may be an item whose check did not pass.
    pub allow_red: bool,
    /// What the commit says, where one is made; without it, which item it is of. Its trailers are ours in either case.
    pub message: Option<Message>,
    /// Whether the person's hooks are run before a commit onto `HEAD`, and told of it.
    pub hooks: bool,
    /// Whether items that conflict are to be left for the user to resolve.
    pub three_way: bool,
    /// Whether to say what would be done and to change nothing.
    pub dry_run: bool,
}

/// Where changes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Onto {
    /// A branch that no work tree has checked out, with a commit for each item; made at the run's base if it is not there.
    Branch(String),
    /// The index and the work tree.
    WorkTree {
        /// Whether to commit them onto `HEAD` as well, with a commit for each item.
        commit: bool,
    },
}

/// One item that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
pub struct Step {
    /// The item.
    pub item: ItemId,
    /// The patch.
    pub product: Digest,
    /// The tree after it.
    pub tree: Oid,
    /// Whether it changed anything that was not there already.
    pub changed: bool,
    /// Whether it fits only together with the item after it, because what stands there has gone further already.
    pub folded: bool,
    /// The commit made for it.
    pub commit: Option<Oid>,
    /// Whether its check did not pass.
    pub red: bool,
    /// Whether it rests on what a person resolved.
    pub resolved: bool,
}

/// An item that could not be merged.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Conflict {
    /// The item.
    pub item: ItemId,
    /// The paths that it and what stands there change in different ways.
    pub paths: Vec<String>,
    /// The items applied before it that change any of these paths.
    pub with: Vec<ItemId>,
}

/// Items that would be applied together, and what that would change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Planned {
    /// The items.
    pub items: Vec<ItemId>,
    /// What their commit would say; none where none would be made.
    pub message: Option<String>,
    /// The files that would change.
    pub files: Vec<Change>,
}

/// A file that would change.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// How, by git's letter for it.
    pub change: char,
    /// The path.
    pub path: String,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The items, in the order in which they were applied.
    pub steps: Vec<Step>,
    /// Those that could not be; if there are any, nothing was changed, unless it stopped there.
    pub conflicts: Vec<Conflict>,
    /// Whether it stopped for a person to resolve a conflict.
    pub stopped: bool,
    /// The branch that moved, if one did, by its short name; `HEAD` where it is detached.
    pub moved: Option<String>,
    /// What hooks printed.
    pub said: Vec<String>,
    /// What would be changed, where nothing was to be.
    pub planned: Option<Vec<Planned>>,
    /// Changes to submodules, none of which is touched.
    pub submodules: Vec<Left>,
}

/// Applies a run's patches, or says what that would do. After an error or a conflict, nothing has changed.
pub fn apply(store: &Store, run: &VerifiedRun, request: &Request) -> Result<Applied, Error> {
    let view: &View = run;
    if let Some(underway) = Underway::read(store)? {
        return Err(threeway::Error::Underway(underway.run().clone()).into());
    }
    let chosen = parts::chosen(view, request.item)?;
    if !request.allow_red {
        let red = parts::red(view, &chosen);
        if !red.is_empty() {
            return Err(Error::Red(red));
        }
    }
    let base = view.state.submitted.base;
    if !store.contains(base) {
        return Err(Error::NoBase(base));
    }
    let target = Target::find(store, &request.onto, base)?;
    let scratch = if request.dry_run { Scratch::apart(store, base)? } else { Scratch::new(store, base)? };
    let parts = parts::read(store, &scratch, run, &chosen)?;
    let items = request.item.map_or_else(|| parts::done(view).collect(), |at| vec![at]);
    let submodules = submodules::left(store, view, scratch.base(), &items)?;
    let mut applied = parts::join(&scratch, view, &parts)?;
    if applied.conflicts.is_empty() {
        let onto = scratch.tree_of(target.onto)?;
        applied = parts::transplant(&scratch, view, &parts, applied, onto)?;
    }
    let message = request.message.as_ref();
    if let (false, false, true, Some(head)) =
        (applied.conflicts.is_empty(), request.dry_run, request.three_way, target.head())
    {
        let count = chosen.len();
        if message.is_some() && count > 1 {
            return Err(Error::Commits(count));
        }
        let applied = threeway::begin((store, &scratch), (run, &parts), (head, message), request.hooks)?;
        return Ok(Applied { submodules, ..applied });
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
        target.finish(store, &view.run, request, &mut applied)?;
    }
    Ok(Applied { submodules, ..applied })
}

/// Names items, as what a sentence is about.
fn are(items: &[ItemId]) -> String {
    let named: Vec<String> = items.iter().map(|item| format!("{:?}", item.as_str())).collect();
    format!("{} {}", named.join(", "), if items.len() == 1 { "is" } else { "are" })
}

/// Why a run's patches could not be applied.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("the run's base commit {0} is not in this repository")]
    NoBase(Oid),
    #[error("the item {0:?} is done and changed no tracked file: it has no patch")]
    NoPatch(ItemId),
    #[error("the item {0:?} is {1}; only what is done can be applied")]
    NotDone(ItemId, &'static str),
    #[error("{} red: the check did not pass; nothing was changed", are(.0))]
    Red(Vec<ItemId>),
    #[error("the patch of {0:?} in the object database is not the one that its entry names")]
    Altered(ItemId, #[source] Box<checked::Error>),
    #[error("the patch of {0:?} does not apply to the run's base")]
    Patch(ItemId, #[source] program::Error),
    #[error("{0:?} is not the name of a branch")]
    BadBranch(String),
    #[error("the branch {0:?} is checked out in {1}")]
    CheckedOut(String, String),
    #[error("this is a bare repository: there is no work tree to apply anything to")]
    Bare,
    #[error("HEAD does not point at a commit yet")]
    Unborn,
    #[error("local changes are in the way; nothing was changed")]
    LocalChanges(#[source] work_tree::Error),
    #[error("a hook refused the commit; nothing was changed")]
    Hook(#[from] hook::Error),
    #[error(
        "the hook {0} changed what would be committed, and a commit that names a product has just its bytes; nothing was changed"
    )]
    HookIndex(&'static str),
    #[error("a hook changed the lines that name the run, the item and the product; nothing was changed")]
    HookTrailers,
    #[error(
        "{0:?} is one of the hooks that would be run, or leads to one, and what is applied changes it; nothing was changed"
    )]
    OwnHooks(PathBuf),
    #[error("what is applied changes the configuration by which hooks are found; nothing was changed")]
    OtherHooks,
    #[error("the message of the commit could not be written or read")]
    MessageFile(#[source] io::Error),
    #[error("{0}; but index and work tree could not be put back: {1}")]
    Left(Box<Error>, put_back::Error),
    #[error(transparent)]
    PutBack(#[from] put_back::Error),
    #[error("{0} commits would be made, and the message is for one; nothing was changed")]
    Commits(usize),
    #[error(transparent)]
    ThreeWay(#[from] threeway::Error),
    #[error(transparent)]
    Message(#[from] message::Error),
    #[error("the commit could not be made")]
    Commit(#[source] program::Error),
    #[error(transparent)]
    Git(#[from] program::Error),
    #[error(transparent)]
    Merge(#[from] merge::Error),
    #[error(transparent)]
    WorkTree(#[from] work_tree::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
}
