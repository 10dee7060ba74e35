//! The whole way back from an item: what it consumed, who made that of what, over the runs that are here.
//!
//! Every run on the way passes the gate before a word of it is repeated.

mod elsewhere;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::ledger::merkle;
use crate::model::digest::Digest;
use crate::model::document::Author;
use crate::model::entry::Event;
use crate::model::name::{FilePath, ItemId, RunId, ThreadId};
use crate::model::plan::{ProductKey, Selector, Source};
use crate::model::reused::Reused;
use crate::model::thread::CheckpointId;
use crate::repository::Repository;

use super::target::{self, Target};
use super::{Vetted, View, show};
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
    /// An item of the run that is continued and is not here: its signed entries, which were sealed with this one, stand in for it.
    Continued,
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

/// A run on the way, with what its entries say of each item.
struct Opened {
    run: Vetted,
    /// The entry that dispatched its latest attempt.
    fired: HashMap<ItemId, u64>,
    /// Where its products come from, if it was not run.
    reused: HashMap<ItemId, Reused>,
}

/// The runs on the way.
struct Way<'w, E> {
    repository: &'w Repository,
    /// Takes a run through the gate.
    open: &'w mut dyn FnMut(&Target) -> Result<Vetted, E>,
    runs: Vec<Opened>,
    /// Which of them was sealed with a root under a name; none where it is not here.
    sealed: BTreeMap<(RunId, Digest), Option<usize>>,
    threads: Threads,
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
        let first = open(&target)?;
        let mut way =
            Way { repository: self, open, runs: Vec::new(), sealed: BTreeMap::new(), threads: Threads::default() };
        way.add(first);
        let run = &way.runs[0].run;
        let (at, selected) = target::item_and_rest(run, rest).map_err(Error::from)?;
        let mut first = of_item(run, at, 0, Kind::Item);
        if let Some(named) = selected {
            let unknown = || Error::NoProduct(text.to_owned());
            let key = ProductKey::named(named).map_err(|_| unknown())?;
            let product = run.state.items[at].products.get(&key).ok_or_else(unknown)?;
            (first.product, first.sha256) = (Some(key.to_string()), Some(product.sha256));
        }
        let (mut steps, mut seen) = (Vec::new(), BTreeSet::new());
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
                let mut next = before(&way.runs[run], run, &item, depth);
                next.extend(way.imported(run, &item, depth)?);
                next.extend(way.taken(run, &item, depth)?);
                // The last is gone first.
                left.extend(next.into_iter().rev());
            }
        }
        Ok(Lineage { schema: "git-handoff.lineage/1", steps })
    }
}

impl<E: From<Error>> Way<'_, E> {
    /// Takes in a run; returns its place.
    fn add(&mut self, run: Vetted) -> usize {
        let (mut fired, mut reused) = (HashMap::new(), HashMap::new());
        for link in &run.links {
            match &link.entry.event {
                Event::ItemFired(e) => drop(fired.insert(e.item.clone(), link.entry.seq)),
                Event::ItemReconciled(e) => {
                    reused.extend(e.reused.iter().map(|reused| (e.item.clone(), reused.clone())));
                }
                _ => {}
            }
        }
        let at = self.runs.len();
        self.sealed.extend(show::seal(&run).map(|seal| ((run.run.clone(), seal.root), Some(at))));
        self.runs.push(Opened { run, fired, reused });
        at
    }

    /// Returns the item of another run that an item takes its products from.
    fn taken(&mut self, run: usize, item: &ItemId, depth: usize) -> Result<Option<Next>, E> {
        let Some(reused) = self.runs[run].reused.get(item).cloned() else { return Ok(None) };
        let continues = self.runs[run].run.state.submitted.continues.as_ref();
        let entries = continues.filter(|_| reused.continued).map(|continues| continues.entries);
        self.other((reused.run, reused.root, entries), reused.item, (depth, Kind::Reused)).map(Some)
    }

    /// Returns the step to an item of a run that was sealed with a root, or continued after so many entries, and that run if it is here.
    fn other(
        &mut self,
        (run, root, entries): (RunId, Digest, Option<u64>),
        item: ItemId,
        (depth, kind): (usize, Kind),
    ) -> Result<Next, E> {
        let found = self.find(&run, root, entries)?;
        let there = found.and_then(|at| Some((at, self.runs[at].run.state.graph.position(&item)?)));
        let Some((at, position)) = there else {
            let kind = if entries.is_some() { Kind::Continued } else { Kind::Proven };
            let step = Step { item: Some(item), root: Some(root), ..leaf(depth, kind, run) };
            return Ok(Next { step, run: None });
        };
        Ok(Next { step: of_item(&self.runs[at].run, position, depth, kind), run: Some(at) })
    }

    /// Finds the run of a name that was sealed with a root, or whose first entries have it, here or as it was fetched; each root is
    /// looked for once.
    fn find(&mut self, id: &RunId, root: Digest, entries: Option<u64>) -> Result<Option<usize>, E> {
        let key = (id.clone(), root);
        if let Some(known) = self.sealed.get(&key) {
            return Ok(*known);
        }
        let store = &self.repository.store;
        let mut barred = None;
        for target in Target::copies(store, id).map_err(Error::from)? {
            // Another run of that name is another run, whatever is to be said of it; what cannot be read may be this one.
            if target.view(store).is_ok_and(|view| !has_root(&view, root, entries)) {
                continue;
            }
            match (self.open)(&target) {
                Ok(run) if has_root(&run, root, entries) => return Ok(Some(self.add(run))),
                Ok(_) => {}
                Err(error) => barred = Some(error),
            }
        }
        if let Some(error) = barred {
            return Err(error);
        }
        self.sealed.insert(key, None);
        Ok(None)
    }
}

/// Returns true if a run was sealed with a root, or, where a number is given, if its first entries have it.
fn has_root(view: &View, root: Digest, entries: Option<u64>) -> bool {
    let Some(entries) = entries else { return show::seal(view).is_some_and(|seal| seal.root == root) };
    let under = usize::try_from(entries).ok().and_then(|entries| view.links.get(..entries));
    under.is_some_and(|under| merkle::root(under.iter().map(|link| link.hash)) == root)
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
fn before(opened: &Opened, index: usize, item: &ItemId, depth: usize) -> Vec<Next> {
    let run = &opened.run;
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
                // The same bytes may have been written before, by others: it consumed the highest revision that was there.
                let mut earlier = revisions.iter().rev().skip_while(|one| opened.fired.get(item) < Some(&one.entry));
                let author = earlier.find(|revision| revision.product.sha256 == input.digest);
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
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("say which item: RUN/ITEM, or RUN/ITEM:outputs/PATH")]
    NotSaid,
    #[error("there is no product {0:?}")]
    NoProduct(String),
    #[error("there is no evidence of where {0} comes from")]
    NoEvidence(String),
    #[error(transparent)]
    Trust(#[from] Box<crate::repository::trust::Error>),
    #[error(transparent)]
    Verify(#[from] crate::verify::Error),
    #[error(transparent)]
    Run(#[from] super::Error),
    #[error(transparent)]
    Blob(#[from] crate::git::checked::Error),
    #[error("the way back has more than {MOST} steps")]
    Long,
    #[error(transparent)]
    Target(#[from] target::Error),
}
