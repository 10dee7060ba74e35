//! Puts what a run's items changed onto a commit, a branch or the work tree.
//!
//! Everything is merged as trees, in memory: an item's result is the run's base with its patch, and it is merged with what
//! stands there so far over that base. So an item that built on another's patch, and therefore contains it, fits as well as
//! one that did not. Nothing moves before every item has merged.

use std::collections::BTreeSet;

use crate::git::merge::{self, Scratch};
use crate::git::program;
use crate::git::refs;
use crate::git::store::{self, Store};
use crate::git::work_tree;
use crate::model::digest::{Digest, Oid};
use crate::model::graph::Graph;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::{ProductKey, Selector, Source};
use crate::model::state::Phase;
use crate::run::View;

/// What to apply, and onto what.
#[derive(Clone, Debug)]
pub struct Request {
    /// Only this item, by position; otherwise every item that is done.
    pub item: Option<usize>,
    /// Where it goes.
    pub onto: Onto,
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
pub struct Step {
    /// The item.
    pub item: ItemId,
    /// The patch.
    pub product: Digest,
    /// The tree after it.
    pub tree: Oid,
    /// Whether it changed anything that was not there already.
    pub changed: bool,
    /// The commit made for it.
    pub commit: Option<Oid>,
}

/// An item that could not be merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The item.
    pub item: ItemId,
    /// The paths that it and what stands there change in different ways.
    pub paths: Vec<String>,
    /// The items applied before it that change any of these paths.
    pub with: Vec<ItemId>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The items, in the order in which they were applied.
    pub steps: Vec<Step>,
    /// Those that could not be; if there are any, nothing was changed.
    pub conflicts: Vec<Conflict>,
    /// The branch that moved, if one did, by its short name; `HEAD` where it is detached.
    pub moved: Option<String>,
}

/// An item's patch, and the tree that it makes of the base.
struct Part {
    at: usize,
    item: ItemId,
    product: Digest,
    result: Oid,
}

/// Applies a run's patches. After an error or a conflict, nothing has changed.
pub fn apply(store: &Store, view: &View, request: &Request) -> Result<Applied, Error> {
    let chosen = chosen(view, request.item)?;
    let base = view.state.submitted.base;
    if !store.contains(base) {
        return Err(Error::NoBase(base));
    }
    let target = Target::find(store, &request.onto, base)?;
    let scratch = Scratch::new(store, base)?;
    let mut parts = Vec::new();
    for at in chosen {
        parts.push(part(store, &scratch, view, at)?);
    }
    let mut applied = merge_all(&scratch, view, &parts, scratch.tree_of(target.onto)?)?;
    if !applied.conflicts.is_empty() || applied.steps.iter().all(|step| !step.changed) {
        return Ok(applied);
    }
    target.finish(store, &view.run, &mut applied)?;
    Ok(applied)
}

/// Returns the positions of the items to apply, every producer before its consumers, otherwise in plan order.
fn chosen(view: &View, only: Option<usize>) -> Result<Vec<usize>, Error> {
    let state = &view.state;
    let has_patch = |at: usize| state.items[at].products.contains_key(&ProductKey::Patch);
    if let Some(at) = only {
        let id = || state.graph.item(at).id.clone();
        return match state.items[at].phase {
            Phase::Done if has_patch(at) => Ok(vec![at]),
            Phase::Done => Err(Error::NoPatch(id())),
            _ => Err(Error::NotDone(id(), state.status(at))),
        };
    }
    let done = |at: &usize| state.items[*at].phase == Phase::Done && has_patch(*at);
    Ok(in_order(&state.graph).into_iter().filter(done).collect())
}

/// Returns all positions, dependencies first; what is free to go first goes in plan order.
fn in_order(graph: &Graph) -> Vec<usize> {
    let count = graph.items().len();
    let mut missing: Vec<usize> = (0..count).map(|at| graph.dependencies(at).len()).collect();
    let mut free: BTreeSet<usize> = (0..count).filter(|at| missing[*at] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(at) = free.pop_first() {
        order.push(at);
        for &next in graph.dependents(at) {
            missing[next] -= 1;
            if missing[next] == 0 {
                free.insert(next);
            }
        }
    }
    order
}

fn part(store: &Store, scratch: &Scratch, view: &View, at: usize) -> Result<Part, Error> {
    let item = view.state.graph.item(at).id.clone();
    let product = view.state.items[at].products[&ProductKey::Patch];
    let mut patch = Vec::new();
    let (digest, _) = store.copy_blob(product.oid, &mut patch)?;
    // What is put into somebody's work is what the chain says, or nothing.
    if digest != product.sha256 {
        return Err(Error::Altered(item, product.sha256));
    }
    let result = scratch.patched(patch).map_err(|e| Error::Patch(item.clone(), e))?;
    Ok(Part { at, item, product: digest, result })
}

fn merge_all(scratch: &Scratch, view: &View, parts: &[Part], onto: Oid) -> Result<Applied, Error> {
    let mut applied = Applied { steps: Vec::new(), conflicts: Vec::new(), moved: None };
    let mut tree = onto;
    let mut lost = BTreeSet::new();
    for part in parts {
        // What builds on something that did not merge would only repeat its conflicts.
        if view.state.graph.dependencies(part.at).iter().any(|on| lost.contains(on)) {
            lost.insert(part.at);
            continue;
        }
        match merge_one(scratch, view, parts, part, tree)? {
            Ok(merged) => {
                let (item, product) = (part.item.clone(), part.product);
                applied.steps.push(Step { item, product, tree: merged, changed: merged != tree, commit: None });
                tree = merged;
            }
            Err(paths) => {
                let with = others(scratch, parts, part, &paths)?;
                applied.conflicts.push(Conflict { item: part.item.clone(), paths, with });
                lost.insert(part.at);
            }
        }
    }
    Ok(applied)
}

/// Merges one item's result into a tree; the paths in conflict if that cannot be done.
///
/// An item that was given others' patches may have rewritten the very lines that they changed. If it kept everything else of
/// theirs, it built on them, and what it made of those lines stands.
fn merge_one(
    scratch: &Scratch,
    view: &View,
    parts: &[Part],
    part: &Part,
    tree: Oid,
) -> Result<Result<Oid, Vec<String>>, Error> {
    let paths = match scratch.merge(scratch.base(), tree, part.result)? {
        Ok(merged) => return Ok(Ok(merged)),
        Err(paths) => paths,
    };
    let mut given = scratch.base();
    for producer in consumed(view, parts, part.at) {
        match scratch.merge(scratch.base(), given, producer.result)? {
            Ok(both) => given = both,
            Err(_) => return Ok(Err(paths)),
        }
    }
    if given == scratch.base() {
        return Ok(Err(paths));
    }
    let built_upon = scratch.merge(given, tree, part.result)?;
    let preferred = scratch.merge_preferring_theirs(scratch.base(), tree, part.result)?;
    match (built_upon, preferred) {
        (Ok(one), Some(other)) if one == other => Ok(Ok(one)),
        _ => Ok(Err(paths)),
    }
}

/// Returns the parts whose patches an item was given, in their order.
fn consumed<'a>(view: &'a View, parts: &'a [Part], at: usize) -> impl Iterator<Item = &'a Part> {
    let inputs = &view.state.items[at].inputs;
    parts.iter().filter(move |part| {
        let this = Source::Item(part.item.clone());
        inputs.values().any(|input| input.from == this && input.select == Selector::Patch)
    })
}

fn others(scratch: &Scratch, parts: &[Part], part: &Part, paths: &[String]) -> Result<Vec<ItemId>, Error> {
    let mut others = Vec::new();
    for other in parts.iter().take_while(|other| other.at != part.at) {
        let touched = scratch.changed(scratch.base(), other.result)?;
        if paths.iter().any(|path| touched.contains(path)) {
            others.push(other.item.clone());
        }
    }
    Ok(others)
}

/// The place that the changes go to, as it was when it was looked at.
enum Target {
    Branch { name: String, tip: Option<Oid> },
    WorkTree { head: Oid, branch: Option<String>, commit: bool },
}

struct Found {
    onto: Oid,
    target: Target,
}

impl Target {
    fn find(store: &Store, onto: &Onto, base: Oid) -> Result<Found, Error> {
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
    fn finish(&self, store: &Store, run: &RunId, applied: &mut Applied) -> Result<(), Error> {
        let last = applied.steps.last().expect("something changed").tree;
        match &self.target {
            Target::Branch { name, tip } => {
                let tip_now = commits(store, run, &mut applied.steps, self.onto)?;
                store.sync()?;
                // A crash here leaves commits that nothing points at, and the branch as it was.
                refs::move_branch(store, name, *tip, tip_now, &format!("handoff: apply {run}"))?;
                applied.moved = name.strip_prefix("refs/heads/").map(str::to_owned);
            }
            Target::WorkTree { head, branch, commit } => {
                let tip = if *commit { Some(commits(store, run, &mut applied.steps, *head)?) } else { None };
                work_tree::switch(store, *head, last).map_err(Error::LocalChanges)?;
                let Some(tip) = tip else { return Ok(()) };
                store.sync()?;
                // A crash here leaves the changes in the index, for the user to commit.
                let name = branch.as_deref().unwrap_or("HEAD");
                if let Err(error) = refs::move_branch(store, name, Some(*head), tip, &format!("handoff: apply {run}")) {
                    // Somebody committed meanwhile: back to what was there. If that fails too, the first error tells more.
                    let _ = work_tree::switch(store, last, *head);
                    return Err(error.into());
                }
                applied.moved = Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
            }
        }
        Ok(())
    }
}

/// Makes one commit for each item that changed something; returns the last.
fn commits(store: &Store, run: &RunId, steps: &mut [Step], onto: Oid) -> Result<Oid, Error> {
    let mut tip = onto;
    for step in steps.iter_mut().filter(|step| step.changed) {
        let message = format!(
            "{item}: apply the patch of {run}\n\nHandoff-Run: {run}\nHandoff-Item: {item}\nHandoff-Product: {product}\n",
            item = step.item,
            product = step.product,
        );
        tip = merge::commit(store, step.tree, tip, &message).map_err(Error::Commit)?;
        step.commit = Some(tip);
    }
    Ok(tip)
}

/// Why a run's patches could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The commit that the patches are against is elsewhere.
    #[error("the run's base commit {0} is not in this repository")]
    NoBase(Oid),
    /// The item handed over no patch.
    #[error("the item {0:?} is done and changed no tracked file: it has no patch")]
    NoPatch(ItemId),
    /// The item is not done.
    #[error("the item {0:?} is {1}; only what is done can be applied")]
    NotDone(ItemId, &'static str),
    /// The bytes of a patch are not those that were recorded.
    #[error("the patch of {0:?} in the object database is not {1}, which its entry names")]
    Altered(ItemId, Digest),
    /// A patch does not apply to the base it was made against.
    #[error("the patch of {0:?} does not apply to the run's base")]
    Patch(ItemId, #[source] program::Error),
    /// The name is no branch's.
    #[error("{0:?} is not the name of a branch")]
    BadBranch(String),
    /// Moving the branch would leave a work tree behind.
    #[error("the branch {0:?} is checked out in {1}")]
    CheckedOut(String, String),
    /// There is no work tree.
    #[error("this is a bare repository: there is no work tree to apply anything to")]
    Bare,
    /// There is no commit to apply to.
    #[error("HEAD does not point at a commit yet")]
    Unborn,
    /// Local changes are in the way.
    #[error("local changes are in the way; nothing was changed")]
    LocalChanges(#[source] work_tree::Error),
    /// A commit could not be made.
    #[error("the commit could not be made")]
    Commit(#[source] program::Error),
    /// git failed.
    #[error(transparent)]
    Git(#[from] program::Error),
    /// Merging failed for another reason than a conflict.
    #[error(transparent)]
    Merge(#[from] merge::Error),
    /// The work tree or the branch could not be looked at.
    #[error(transparent)]
    WorkTree(#[from] work_tree::Error),
    /// Objects could not be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A ref could not be read or moved.
    #[error(transparent)]
    Ref(#[from] refs::Error),
}
