//! The tree of each item on the run's base, and their merge.

use std::collections::{BTreeMap, BTreeSet};

use crate::git::merge::Scratch;
use crate::git::protected;
use crate::git::start::{self, Starts, Trees};
use crate::git::store::Store;
use crate::git::verified_stream;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::Product;
use crate::model::item_index::ItemIndex;
use crate::model::name::ItemId;
use crate::model::plan::ProductKey;
use crate::model::protected::ProtectedChange;
use crate::model::state::{ItemState, Phase};
use crate::run::query::{VerifiedRun, View};

use super::{Applied, Conflict, Error, Step, submodules};

/// An item's patch, and the tree that it began on with that patch.
#[derive(Clone)]
pub(super) struct Part {
    item: ItemId,
    product: Digest,
    /// The tree that it began on, without the changes of replaced items: the base, unless its needs
    /// apply patches.
    start: Oid,
    result: Oid,
    /// True if it is to be applied; otherwise it is here because an applied item consumed its
    /// patch.
    chosen: bool,
    /// True if its changes to protected files are left out.
    is_cut: bool,
}

impl Part {
    /// Sets whether it is to be applied.
    pub(super) fn chosen(self, chosen: bool) -> Self {
        Self { chosen, ..self }
    }

    /// Returns true if it is to be applied.
    pub(super) fn is_chosen(&self) -> bool {
        self.chosen
    }

    /// Returns true if its changes to protected files are left out.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the item.
    pub(super) fn item(&self) -> &ItemId {
        &self.item
    }

    /// Returns the digest of its patch.
    pub(super) fn product(&self) -> Digest {
        self.product
    }

    /// Returns the tree that it began on with its patch.
    pub(super) fn result(&self) -> Oid {
        self.result
    }
}

/// The parts by item, in the order of application.
pub(super) type Parts = Vec<(ItemIndex, Part)>;

/// Returns the items to apply: producers before consumers, otherwise in plan order.
pub(super) fn chosen(view: &View, only: Option<ItemIndex>) -> Result<Vec<ItemIndex>, Error> {
    let state = &view.state;
    if let Some(at) = only {
        return match state.items[at].phase {
            Phase::Done if state.items[at].products.contains_key(&ProductKey::Patch) => Ok(vec![at]),
            // Its changes belong to other repositories and are reported.
            Phase::Done if submodules::named_like_one(view, at).next().is_some() => Ok(Vec::new()),
            Phase::Done => Err(Error::NoPatch(state.graph.item(at).id.clone())),
            _ => Err(Error::NotDone(state.graph.item(at).id.clone(), state.status(at))),
        };
    }
    Ok(done(view).filter(|at| state.items[*at].products.contains_key(&ProductKey::Patch)).collect())
}

/// Returns the items that are done, in the same order. A superseded item is contained in its
/// successor's patch.
pub(super) fn done(view: &View) -> impl Iterator<Item = ItemIndex> {
    let state = &view.state;
    state.graph.order().into_iter().filter(move |at| {
        state.items[*at].phase == Phase::Done && (state.newest(&state.graph.item(*at).id) == Some(*at))
    })
}

/// Returns the red items among the chosen ones and all that they build on. Ignores items that are
/// red only because of changes to protected files if those are left out.
pub(super) fn red(view: &View, chosen: &[ItemIndex], without_protected: bool) -> Vec<ItemId> {
    let below = chosen.iter().flat_map(|at| view.state.built_upon(*at));
    let all: BTreeSet<ItemIndex> = below.chain(chosen.iter().copied()).collect();
    let red = all.into_iter().filter(|at| {
        let item = &view.state.items[*at];
        item.red && !(item.clearable && without_protected)
    });
    red.map(|at| view.state.graph.item(at).id.clone()).collect()
}

/// Reads the patches of the chosen items and of those whose patches they consumed.
pub(super) fn read(
    store: &Store,
    scratch: &Scratch,
    run: &VerifiedRun,
    chosen: &[ItemIndex],
    without_protected: bool,
) -> Result<Parts, Error> {
    let given: BTreeSet<ItemIndex> = chosen.iter().flat_map(|at| run.state.given(*at)).collect();
    let order = run.state.graph.order().into_iter().filter(|at| chosen.contains(at) || given.contains(at));
    let mut starts = Starts::new(scratch, &run.state);
    order
        .map(|at| {
            let mut part = part(store, &mut starts, run, at, chosen.contains(&at))?;
            let changes = &run.state.items[at].protected;
            if without_protected && !changes.is_empty() {
                part.result = protected::without(scratch, part.start, part.result, changes)?;
                part.is_cut = true;
            }
            Ok((at, part))
        })
        .collect()
}

/// Reads an item's patch and creates its tree.
pub(super) fn part(
    store: &Store,
    starts: &mut Starts<'_>,
    run: &VerifiedRun,
    at: ItemIndex,
    chosen: bool,
) -> Result<Part, Error> {
    let item = run.state.graph.item(at).id.clone();
    let product =
        run.state.items[at].products.get(&ProductKey::Patch).ok_or_else(|| Error::NoPatch(item.clone()))?.sha256;
    // Only bytes that match the chain may be applied.
    let Trees { result, .. } = starts
        .trees(at, &|of: ItemIndex, patch: Product| {
            run.blob(&patch).read(store).map_err(|error| match error {
                verified_stream::Error::Store(inner) => Error::Store(inner),
                altered => Error::Altered(run.state.graph.item(of).id.clone(), Box::new(altered)),
            })
        })
        .map_err(start_error)?;
    // The changes of replaced items are applied with those of the items that replaced them.
    let applied: Vec<ItemIndex> = run
        .state
        .applied(at)
        .into_iter()
        .filter(|index| run.state.newest(&run.state.graph.item(*index).id) == Some(*index))
        .collect();
    let start = starts.merged(&applied).map_err(start_error)?;
    Ok(Part { item, product, start, result, chosen, is_cut: false })
}

/// Converts an error in putting together a base.
fn start_error(error: start::Error<Error>) -> Error {
    match error {
        start::Error::Read(error) => error,
        start::Error::Merge(error) => Error::Merge(error),
        start::Error::NoPatch(item) => Error::NoPatch(item),
        start::Error::Patch(item, error) => Error::Patch(item, error),
        start::Error::Conflict(item, paths) => Error::Incomposable(item, paths.join(", ")),
    }
}

/// Merges the chosen results over the base in order.
pub(super) fn join(scratch: &Scratch, view: &View, parts: &Parts) -> Result<Applied, Error> {
    let mut applied = Applied::default();
    let mut tree = scratch.base();
    let mut lost = BTreeSet::new();
    for (at, part) in parts.iter().filter(|(_, part)| part.chosen) {
        // An item that builds on a conflicting one would only repeat its conflicts.
        if view.state.graph.dependencies(*at).iter().any(|on| lost.contains(on)) {
            lost.insert(*at);
            continue;
        }
        match merge_one(scratch, view, parts, *at, part, tree)? {
            Ok(merged) => {
                let (item, product) = (part.item.clone(), part.product);
                let changed = merged != tree;
                let state = &view.state.items[*at];
                applied.steps.push(Step {
                    item,
                    product,
                    tree: merged,
                    changed,
                    folded: false,
                    commit: None,
                    red: state.red,
                    judged: judged(state, part.is_cut),
                    resolved: part.is_cut,
                    without_protected: part.is_cut,
                });
                tree = merged;
            }
            Err(paths) => {
                let with = items_changing(scratch, parts, *at, &paths)?;
                applied.conflicts.push(Conflict { item: part.item.clone(), paths, with });
                lost.insert(*at);
            }
        }
    }
    Ok(applied)
}

/// Returns the changes to protected files that a check judged, if they are applied.
pub(super) fn judged(state: &ItemState, is_cut: bool) -> Vec<ProtectedChange> {
    if state.judged && !is_cut { state.protected.clone() } else { Vec::new() }
}

/// Merges one item into a tree, or returns `None` if it conflicts.
pub(super) fn fits(scratch: &Scratch, view: &View, parts: &Parts, nth: usize, tree: Oid) -> Result<Option<Oid>, Error> {
    let (at, part) = &parts[nth];
    Ok(merge_one(scratch, view, parts, *at, part, tree)?.ok())
}

/// Returns the tree that an item started from: the base with its consumed patches, if it kept them,
/// otherwise the base.
pub(super) fn before(scratch: &Scratch, view: &View, parts: &Parts, nth: usize) -> Result<Oid, Error> {
    if parts[nth].1.start != scratch.base() {
        return Ok(parts[nth].1.start);
    }
    let given = together(scratch, parts, &view.state.given(parts[nth].0))?;
    if let Some(given) = given.filter(|given| *given != scratch.base())
        && fits(scratch, view, parts, nth, given)? == Some(parts[nth].1.result)
    {
        return Ok(given);
    }
    Ok(scratch.base())
}

/// Merges the results of some items over the base, or returns `None` if they conflict.
fn together(scratch: &Scratch, parts: &Parts, items: &[ItemIndex]) -> Result<Option<Oid>, Error> {
    let mut all = scratch.base();
    for (_, part) in parts.iter().filter(|(at, _)| items.contains(at)) {
        match scratch.merge(scratch.base(), all, part.result)? {
            Ok(both) => all = both,
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// Merges one item's result into a tree, or returns the conflicting paths.
///
/// An item may have rewritten the very lines that its consumed patches changed. If it kept
/// everything else of theirs, it built on them, and its version of these lines wins.
fn merge_one(
    scratch: &Scratch,
    view: &View,
    parts: &Parts,
    at: ItemIndex,
    part: &Part,
    tree: Oid,
) -> Result<Result<Oid, Vec<String>>, Error> {
    if view.state.graph.item(at).is_claimed() {
        // A commit contains everything of the one before, but for what it changed of it.
        let before = together(scratch, parts, &view.state.given(at))?.unwrap_or(scratch.base());
        return Ok(scratch.merge(before, tree, part.result)?);
    }
    if part.start != scratch.base() {
        // Its patch is the difference from that tree.
        return Ok(scratch.merge(part.start, tree, part.result)?);
    }
    let paths = match scratch.merge(scratch.base(), tree, part.result)? {
        Ok(merged) => return Ok(Ok(merged)),
        Err(paths) => paths,
    };
    let Some(before) = together(scratch, parts, &view.state.given(at))? else { return Ok(Err(paths)) };
    if before == scratch.base() {
        return Ok(Err(paths));
    }
    let built_upon = scratch.merge(before, tree, part.result)?;
    let preferred = scratch.merge_preferring_theirs(scratch.base(), tree, part.result)?;
    match (built_upon, preferred) {
        (Ok(one), Some(other)) if one == other => Ok(Ok(one)),
        _ => Ok(Err(paths)),
    }
}

/// Returns the items before one that change any of some paths.
fn items_changing(scratch: &Scratch, parts: &Parts, at: ItemIndex, paths: &[String]) -> Result<Vec<ItemId>, Error> {
    let mut others = Vec::new();
    for (_, other) in parts.iter().take_while(|(other, _)| *other != at).filter(|(_, other)| other.chosen) {
        let touched = scratch.changed(other.start, other.result)?;
        if paths.iter().any(|path| touched.contains(path)) {
            others.push(other.item.clone());
        }
    }
    Ok(others)
}

/// Merges the steps with the target.
///
/// The total decides whether they fit: the target may already contain the changes, or later ones
/// than an item in the middle made.
pub(super) fn transplant(
    scratch: &Scratch,
    view: &View,
    parts: &Parts,
    mut applied: Applied,
    onto: Oid,
) -> Result<Applied, Error> {
    let Some(last) = applied.steps.last().map(|step| step.tree) else { return Ok(applied) };
    if onto == scratch.base() {
        return Ok(applied);
    }
    let mut chosen = parts.iter().filter(|(_, part)| part.chosen);
    let merged = match (chosen.next(), chosen.next()) {
        (Some((at, part)), None) => merge_one(scratch, view, parts, *at, part, onto)?,
        _ => scratch.merge(scratch.base(), onto, last)?,
    };
    let merged = match merged {
        Ok(merged) => merged,
        Err(paths) => {
            applied.conflicts = blame(scratch, parts, &paths)?;
            return Ok(applied);
        }
    };
    let mut tree = onto;
    let count = applied.steps.len();
    for (nth, step) in applied.steps.iter_mut().enumerate() {
        let here = if nth + 1 == count { Ok(merged) } else { scratch.merge(scratch.base(), onto, step.tree)? };
        step.folded = here.is_err();
        step.tree = here.unwrap_or(tree);
        step.changed = step.tree != tree;
        tree = step.tree;
    }
    // Steps that fit only together count as changed if they change something together.
    for nth in (1..count).rev() {
        if applied.steps[nth - 1].folded {
            applied.steps[nth - 1].changed = applied.steps[nth].changed;
        }
    }
    Ok(applied)
}

/// Returns the items that change the paths in conflict with the target.
fn blame(scratch: &Scratch, parts: &Parts, paths: &[String]) -> Result<Vec<Conflict>, Error> {
    let mut left: BTreeMap<&String, bool> = paths.iter().map(|path| (path, false)).collect();
    let mut conflicts = Vec::new();
    for (_, part) in parts.iter().filter(|(_, part)| part.chosen) {
        let touched = scratch.changed(part.start, part.result)?;
        let own: Vec<String> = paths.iter().filter(|path| touched.contains(*path)).cloned().collect();
        left.iter_mut().for_each(|(path, blamed)| *blamed |= touched.contains(*path));
        if !own.is_empty() {
            conflicts.push(Conflict { item: part.item.clone(), paths: own, with: Vec::new() });
        }
    }
    // A path that no item changes, for example one that the target renamed, is reported with the
    // last item.
    let rest: Vec<String> = left.into_iter().filter(|(_, blamed)| !blamed).map(|(path, _)| path.clone()).collect();
    if let (false, Some((_, part))) = (rest.is_empty(), parts.last()) {
        conflicts.push(Conflict { item: part.item.clone(), paths: rest, with: Vec::new() });
    }
    Ok(conflicts)
}
