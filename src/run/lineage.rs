//! The whole way back from an item: what it consumed, who made that of what, over the runs that are here.
//!
//! Every run on the way passes the gate before a word of it is repeated.

mod elsewhere;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::digest::Digest;
use crate::model::document::Author;
use crate::model::entry::Event;
use crate::model::name::{FilePath, ItemId, RunId, ThreadId};
use crate::model::plan::{ProductKey, Selector, Source};
use crate::model::reused::Reused;
use crate::model::thread::CheckpointId;
use crate::repository::Repository;

use super::target::{self, Target};
use super::view::View;
use super::{Vetted, show};
use elsewhere::Threads;

/// More steps than this are not gone.
const MOST: usize = 100_000;

/// The way back: what `lineage` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Lineage {
    schema: &'static str,
    /// The steps, each followed by what it rests on, which is one deeper.
    pub steps: Vec<Step>,
}

/// One thing on the way.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// How many steps it is from where we began.
    pub depth: usize,
    /// What it is.
    pub kind: Kind,
    /// Its run.
    pub run: RunId,
    /// Its item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// What it is called among its kind: an artifact's path, a document's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<FilePath>,
    /// The thread, of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointId>,
    /// The input key under which what is above it consumed it; absent where it only came after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<FilePath>,
    /// The product that was consumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The digest of the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// The root that its run was sealed with; only said of a run that is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
    /// Who made it: the executor of an item, or the author of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How the item stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// Whether the item is done although its check did not pass; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// Whether what it rests on stands further up; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An item of a run.
    Item,
    /// An item of another run, whose products were taken.
    Reused,
    /// An item of another run, of which a product was sealed with this one.
    Imported,
    /// An item of a run that is not here: its seal and a proof stand in for it.
    Proven,
    /// A checkpoint of a thread.
    Checkpoint,
    /// The run that a checkpoint was made in.
    Tied,
    /// A file that was sealed at submit.
    Artifact,
    /// A document that somebody wrote.
    Document,
}

/// A step that is still to be gone.
struct Next {
    step: Step,
    /// The run that it is in, among those that were opened; none of what leads no further.
    run: Option<usize>,
}

impl Repository {
    /// Goes the way back from what a text names, `<run>/<item>` or `<run>/<item>:<product>`; `open` takes a run through the gate.
    pub fn lineage<E: From<Error>>(
        &self,
        text: &str,
        open: &mut dyn FnMut(&Target) -> Result<Vetted, E>,
    ) -> Result<Lineage, E> {
        let (target, rest) = Target::with_rest(&self.store, text).map_err(Error::from)?;
        let rest = rest.ok_or(Error::NotSaid)?;
        let mut runs = vec![open(&target)?];
        let (at, selected) = target::item_and_rest(&runs[0], rest).map_err(Error::from)?;
        let mut first = of_item(&runs[0], at, 0, Kind::Item);
        if let Some(named) = selected {
            let unknown = || Error::NoProduct(text.to_owned());
            let key = ProductKey::named(named).map_err(|_| unknown())?;
            let product = runs[0].state.items[at].products.get(&key).ok_or_else(unknown)?;
            (first.product, first.sha256) = (Some(key.to_string()), Some(product.sha256));
        }
        let (mut steps, mut seen, mut threads) = (Vec::new(), BTreeSet::new(), Threads::default());
        let mut left = vec![Next { step: first, run: Some(0) }];
        while let Some(Next { mut step, run }) = left.pop() {
            if steps.len() == MOST {
                return Err(Error::Long.into());
            }
            let Some((run, item)) = run.zip(step.item.clone()) else {
                steps.push(step);
                continue;
            };
            let depth = step.depth + 1;
            step.repeated = !seen.insert((run, item.clone()));
            let goes_on = !step.repeated;
            steps.push(step);
            if goes_on {
                let mut next = before(&runs[run], run, &item, depth);
                next.extend(self.imported((&mut runs, &mut threads), (run, &item), depth, open)?);
                next.extend(self.taken(&mut runs, (run, &item), depth, open)?);
                // The last is gone first.
                left.extend(next.into_iter().rev());
            }
        }
        Ok(Lineage { schema: "git-handoff.lineage/1", steps })
    }

    /// Returns the item of another run that an item takes its products from.
    fn taken<E: From<Error>>(
        &self,
        runs: &mut Vec<Vetted>,
        (run, item): (usize, &ItemId),
        depth: usize,
        open: &mut dyn FnMut(&Target) -> Result<Vetted, E>,
    ) -> Result<Option<Next>, E> {
        let Some(reused) = reused(&runs[run], item).cloned() else { return Ok(None) };
        let place = reused.run.as_str().to_owned();
        let other = Other { place: &place, run: reused.run, item: reused.item, root: reused.root };
        self.other(runs, other, (depth, Kind::Reused), open).map(Some)
    }

    /// Returns the step to an item of another run, and that run if it is here.
    fn other<E: From<Error>>(
        &self,
        runs: &mut Vec<Vetted>,
        other: Other<'_>,
        (depth, kind): (usize, Kind),
        open: &mut dyn FnMut(&Target) -> Result<Vetted, E>,
    ) -> Result<Next, E> {
        let Other { place, run, item, root } = other;
        let known = runs.iter().position(|other| is_root(other, &run, root));
        let found = match known {
            Some(at) => Some(at),
            None => match self.copy(place, &run, root).map_err(Error::from)? {
                Some(target) => {
                    runs.push(open(&target)?);
                    Some(runs.len() - 1)
                }
                None => None,
            },
        };
        let there = found.and_then(|at| Some((at, runs[at].state.graph.position(&item)?)));
        let Some((at, position)) = there else {
            let step = Step { item: Some(item), ..leaf(depth, Kind::Proven, run) };
            return Ok(Next { step: Step { root: Some(root), ..step }, run: None });
        };
        Ok(Next { step: of_item(&runs[at], position, depth, kind), run: Some(at) })
    }
}

impl Repository {
    /// Finds a run that was sealed with a root: where it was found then, else ours, else one that was fetched.
    fn copy(&self, place: &str, run: &RunId, root: Digest) -> Result<Option<Target>, target::Error> {
        let named = match Target::look_up(&self.store, place) {
            Ok(named) => named,
            Err(target::Error::Ambiguous { .. }) => None,
            Err(other) => return Err(other),
        };
        let copies = Target::copies(&self.store, run)?;
        // Another run of that name is another run, and what cannot be read is none.
        let is_it = |target: &Target| target.view(&self.store).is_ok_and(|view| is_root(&view, run, root));
        Ok(named.into_iter().chain(copies).find(is_it))
    }
}

/// An item of another run that something was taken from.
struct Other<'a> {
    place: &'a str,
    run: RunId,
    item: ItemId,
    root: Digest,
}

/// Returns where the products of an item come from, if it was not run.
fn reused<'v>(run: &'v Vetted, item: &ItemId) -> Option<&'v Reused> {
    run.links.iter().rev().find_map(|link| match &link.entry.event {
        Event::ItemReconciled(e) if e.item == *item => e.reused.as_ref(),
        _ => None,
    })
}

/// Whether a run is the one that was sealed with a root.
fn is_root(run: &View, id: &RunId, root: Digest) -> bool {
    run.run == *id && show::seal(run).is_some_and(|seal| seal.root == root)
}

fn leaf(depth: usize, kind: Kind, run: RunId) -> Step {
    Step {
        depth,
        kind,
        run,
        item: None,
        name: None,
        thread: None,
        checkpoint: None,
        input: None,
        product: None,
        sha256: None,
        root: None,
        by: None,
        status: None,
        red: false,
        repeated: false,
    }
}

fn of_item(run: &Vetted, at: usize, depth: usize, kind: Kind) -> Step {
    let (item, state) = (run.state.graph.item(at), &run.state.items[at]);
    let by = state.decided_by.clone().unwrap_or_else(|| item.executor.clone());
    Step {
        item: Some(item.id.clone()),
        by: Some(by),
        status: Some(run.state.status(at)),
        red: state.red,
        ..leaf(depth, kind, run.run.clone())
    }
}

/// Returns what an item rests on in its own run: first what it consumed, by its input keys, then what it only came after.
fn before(run: &Vetted, index: usize, item: &ItemId, depth: usize) -> Vec<Next> {
    let Some(at) = run.state.graph.position(item) else { return Vec::new() };
    let (mut next, mut consumed) = (Vec::new(), BTreeSet::new());
    for (key, input) in &run.state.items[at].inputs {
        let product = Some(input.select.product_key().to_string());
        let consumes = |step| Step { input: Some(key.clone()), product, sha256: Some(input.digest), ..step };
        let id = run.run.clone();
        match (&input.from, &input.select) {
            (Source::Item(from), _) => {
                if let Some(on) = run.state.graph.position(from) {
                    consumed.insert(on);
                    next.push(Next { step: consumes(of_item(run, on, depth, Kind::Item)), run: Some(index) });
                }
            }
            // What lies outside the run is looked for by whoever can open other runs.
            (Source::Elsewhere(_), _) => {}
            (Source::Artifacts, select) => {
                let name = select.product_key().output().cloned();
                let step = Step { name, ..leaf(depth, Kind::Artifact, id) };
                next.push(Next { step: consumes(step), run: None });
            }
            (Source::Documents, select) => {
                let Selector::Document { name, .. } = select else { continue };
                let revisions = run.state.documents.revisions(name);
                let author = revisions.iter().find(|revision| revision.product.sha256 == input.digest);
                match author.map(|revision| &revision.author) {
                    Some(Author::Item(from)) if run.state.graph.position(from).is_some_and(|on| on != at) => {
                        let on = run.state.graph.position(from).unwrap_or(at);
                        consumed.insert(on);
                        next.push(Next { step: consumes(of_item(run, on, depth, Kind::Item)), run: Some(index) });
                    }
                    author => {
                        let by = author.map(ToString::to_string);
                        let step = Step { name: Some(name.clone()), by, ..leaf(depth, Kind::Document, id) };
                        next.push(Next { step: consumes(step), run: None });
                    }
                }
            }
        }
    }
    let after = run.state.graph.dependencies(at).iter().filter(|on| !consumed.contains(on));
    next.extend(after.map(|on| Next { step: of_item(run, *on, depth, Kind::Item), run: Some(index) }));
    next
}

/// Why the way back is not gone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is said of no item.
    #[error("say which item: RUN/ITEM, or RUN/ITEM:outputs/PATH")]
    NotSaid,
    /// The item handed no such thing over.
    #[error("there is no product {0:?}")]
    NoProduct(String),
    /// What was sealed with the run does not show where a product comes from.
    #[error("there is no evidence of where {0} comes from")]
    NoEvidence(String),
    /// Whom to trust could not be read.
    #[error(transparent)]
    Trust(#[from] Box<crate::repository::trust::Error>),
    /// Threads could not be read.
    #[error(transparent)]
    Verify(#[from] crate::verify::Error),
    /// The run could not be read.
    #[error(transparent)]
    Run(#[from] super::Error),
    /// A blob of the run could not be read.
    #[error(transparent)]
    Blob(#[from] crate::git::checked::Error),
    /// It does not end.
    #[error("the way back has more than {MOST} steps")]
    Long,
    /// The run is not found.
    #[error(transparent)]
    Target(#[from] target::Error),
}
