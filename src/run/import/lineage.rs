//! Traces the origins of an item: what it consumed and which items made that, over all runs here.
//!
//! Every run on the way passes the gate before any of its entries are used.

mod elsewhere;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::git::verified_stream;
use crate::ledger::merkle;
use crate::model::digest::Digest;
use crate::model::document::Author;
use crate::model::entry::Event;
use crate::model::item_index::ItemIndex;
use crate::model::name::{FilePath, ItemId, RunId, ThreadId};
use crate::model::plan::{ProductKey, Selector, Source};
use crate::model::reused::Reused;
use crate::model::thread::CheckpointId;
use crate::repository::{Repository, trust};
use crate::verify;

use crate::run::query::target::{self, Target};
use crate::run::query::{self, VerifiedRun, View, show};
use elsewhere::Threads;

const MAX_STEPS: usize = 100_000;

/// The origins of an item, as `lineage` prints them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.lineage/1")]
pub struct Lineage {
    /// The steps. Each is followed by its own origins, which are one deeper.
    pub steps: Vec<Step>,
}

/// A step of a [`Lineage`].
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The number of steps from the start.
    pub depth: usize,
    /// The kind.
    pub kind: Kind,
    /// Its run.
    pub run: RunId,
    /// Its item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The path of an artifact, or the name of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<FilePath>,
    /// The thread, of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointId>,
    /// The input key of the item above that consumed it, or `None` if that item only ran after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<FilePath>,
    /// The product that was consumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The digest of the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// The sealed root of a run that is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
    /// The executor of an item, or the author of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The status of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<crate::model::formats::ItemState>"))]
    pub status: Option<&'static str>,
    /// Whether the item is done although its check failed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// Whether its origins are listed at an earlier step; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// The kind of a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An item of a run.
    Item,
    /// An item of another run, whose products were reused.
    Reused,
    /// An item of another run, with a product that was sealed with this one.
    Imported,
    /// An item of a run that is not here. The seal and a proof of it are.
    Proven,
    /// An item of a continued run that is not here. Its signed entries were sealed with this run.
    Continued,
    /// A checkpoint of a thread.
    Checkpoint,
    /// The run in which a checkpoint was made.
    Tied,
    /// A file that was sealed at submit.
    Artifact,
    /// A document that a person wrote.
    Document,
}

/// A step to visit.
struct Next {
    step: Step,
    /// The index of its run, or `None` if the step has no origins.
    run: Option<usize>,
}

/// A run on the way, indexed by item.
struct Opened {
    run: VerifiedRun,
    /// The entry that dispatched the latest attempt.
    fired: HashMap<ItemId, u64>,
    reused: HashMap<ItemId, Reused>,
}

/// A run as another run names it.
struct RunRoot {
    run: RunId,
    root: Digest,
    /// The number of entries under the root, or `None` if the root is that of the seal.
    entries: Option<u64>,
}

impl RunRoot {
    fn is_of(&self, view: &View) -> bool {
        let Some(entries) = self.entries else { return show::seal(view).is_some_and(|seal| seal.root == self.root) };
        let under = usize::try_from(entries).ok().and_then(|entries| view.links.get(..entries));
        under.is_some_and(|under| merkle::root(under.iter().map(|link| link.hash)) == self.root)
    }
}

/// Visits the steps, and opens each run once.
struct Walk<'w, E> {
    repository: &'w Repository,
    /// Passes a run through the gate.
    open: &'w mut dyn FnMut(&Target) -> Result<VerifiedRun, E>,
    runs: Vec<Opened>,
    /// The index of the run with this id and root, or `None` if it is not here.
    by_root: BTreeMap<(RunId, Digest), Option<usize>>,
    threads: Threads,
}

impl Repository {
    /// Traces the origins of `<run>/<item>` or `<run>/<item>:<product>`. `open` passes a run
    /// through the gate.
    pub fn lineage<E: From<Error>>(
        &self,
        text: &str,
        open: &mut dyn FnMut(&Target) -> Result<VerifiedRun, E>,
    ) -> Result<Lineage, E> {
        let (target, rest) = Target::with_rest(&self.store, text).map_err(Error::from)?;
        let rest = rest.ok_or(Error::NotSaid)?;
        let first = open(&target)?;
        let mut walk =
            Walk { repository: self, open, runs: Vec::new(), by_root: BTreeMap::new(), threads: Threads::default() };
        walk.add(first);
        let run = &walk.runs[0].run;
        let (at, selected) = target::item_and_rest(run, rest).map_err(Error::from)?;
        let mut item_first = item_step(run, at, 0, Kind::Item);
        if let Some(selector) = selected {
            let key = ProductKey::from_name(selector).map_err(|_| Error::NoProduct(text.to_owned()))?;
            let product = run.state.items[at].products.get(&key).ok_or_else(|| Error::NoProduct(text.to_owned()))?;
            (item_first.product, item_first.sha256) = (Some(key.to_string()), Some(product.sha256));
        }
        let (mut steps, mut visited) = (Vec::new(), BTreeSet::new());
        let mut left = vec![Next { step: item_first, run: Some(0) }];
        while let Some(Next { mut step, run: next_run }) = left.pop() {
            if steps.len() == MAX_STEPS {
                return Err(Error::Long.into());
            }
            let Some((next_run, item)) = next_run.zip(step.item.clone()) else {
                steps.push(step);
                continue;
            };
            let depth = step.depth + 1;
            step.repeated = !visited.insert((next_run, item.clone()));
            if !step.repeated {
                let mut next = origins_in_run(&walk.runs[next_run], next_run, &item, depth);
                next.extend(walk.imported(next_run, &item, depth)?);
                next.extend(walk.reused(next_run, &item, depth)?);
                // `left` is a stack.
                left.extend(next.into_iter().rev());
            }
            steps.push(step);
        }
        Ok(Lineage { steps })
    }
}

impl<E: From<Error>> Walk<'_, E> {
    /// Adds a run, and returns its index.
    fn add(&mut self, run: VerifiedRun) -> usize {
        let (mut fired, mut reused) = (HashMap::new(), HashMap::new());
        for link in &run.links {
            match &link.entry.event {
                Event::ItemFired(e) => drop(fired.insert(e.item.clone(), link.entry.seq)),
                Event::ItemReconciled(e) => {
                    reused.extend(e.reused.iter().map(|reuse| (e.item.clone(), reuse.clone())));
                }
                _ => {}
            }
        }
        let at = self.runs.len();
        self.by_root.extend(show::seal(&run).map(|seal| ((run.run.clone(), seal.root), Some(at))));
        self.runs.push(Opened { run, fired, reused });
        at
    }

    /// Returns the item of another run whose products an item reuses.
    fn reused(&mut self, run: usize, item: &ItemId, depth: usize) -> Result<Option<Next>, E> {
        let Some(reused) = self.runs[run].reused.get(item).cloned() else { return Ok(None) };
        let continues = self.runs[run].run.state.submitted.continues.as_ref();
        let entries = continues.filter(|_| reused.evidence.is_none()).map(|continues| continues.entries);
        let root = RunRoot { run: reused.run, root: reused.root, entries };
        self.step_to(root, reused.item, depth, Kind::Reused).map(Some)
    }

    /// Returns the step to an item of another run, with the index of that run if it is here.
    fn step_to(&mut self, root: RunRoot, item: ItemId, depth: usize, kind: Kind) -> Result<Next, E> {
        let found = self.find(&root)?;
        let there = found.and_then(|at| Some((at, self.runs[at].run.state.graph.position(&item)?)));
        let Some((at, position)) = there else {
            let leaf_kind = if root.entries.is_some() { Kind::Continued } else { Kind::Proven };
            let step = Step { item: Some(item), root: Some(root.root), ..leaf(depth, leaf_kind, root.run) };
            return Ok(Next { step, run: None });
        };
        Ok(Next { step: item_step(&self.runs[at].run, position, depth, kind), run: Some(at) })
    }

    /// Finds a run by its root among all local and fetched copies. Each root is searched once.
    fn find(&mut self, root: &RunRoot) -> Result<Option<usize>, E> {
        let key = (root.run.clone(), root.root);
        if let Some(known) = self.by_root.get(&key) {
            return Ok(*known);
        }
        let store = &self.repository.store;
        let mut barred = None;
        for target in Target::copies(store, &root.run).map_err(Error::from)? {
            // A run with another root is another run. One that cannot be read may be the right one.
            if target.view(store).is_ok_and(|view| !root.is_of(&view)) {
                continue;
            }
            match (self.open)(&target) {
                Ok(run) if root.is_of(&run) => return Ok(Some(self.add(run))),
                Ok(_) => {}
                Err(error) => barred = Some(error),
            }
        }
        if let Some(error) = barred {
            return Err(error);
        }
        self.by_root.insert(key, None);
        Ok(None)
    }
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

fn item_step(run: &VerifiedRun, at: ItemIndex, depth: usize, kind: Kind) -> Step {
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

/// Returns the origins of an item in its own run: first what it consumed, by input key, then the
/// items that it only ran after.
fn origins_in_run(opened: &Opened, index: usize, item: &ItemId, depth: usize) -> Vec<Next> {
    let run = &opened.run;
    let Some(at) = run.state.graph.position(item) else { return Vec::new() };
    let (mut next, mut consumed) = (Vec::new(), BTreeSet::new());
    for (key, input) in &run.state.items[at].inputs {
        let product = Some(input.select.product_key().to_string());
        // A document can be the product of an item.
        let (maker, step) = match (&input.from, &input.select) {
            (Source::Item(from), _) => match run.state.graph.position(from) {
                Some(on) => (Some(on), item_step(run, on, depth, Kind::Item)),
                None => continue,
            },
            (Source::Artifacts, select) => {
                let name = select.product_key().output().cloned();
                (None, Step { name, ..leaf(depth, Kind::Artifact, run.run.clone()) })
            }
            (Source::Documents, Selector::Document { name, .. }) => {
                let revisions = run.state.documents.revisions(name);
                // Several revisions can have the same bytes. The item consumed the highest one at
                // its dispatch.
                let mut earlier = revisions.iter().rev().skip_while(|one| opened.fired.get(item) < Some(&one.entry));
                let author = earlier.find(|revision| revision.product.sha256 == input.digest);
                let author = author.map(|revision| &revision.author);
                let maker = match author {
                    Some(Author::Item(from)) => run.state.graph.position(from).filter(|on| *on != at),
                    _ => None,
                };
                let by = author.map(ToString::to_string);
                (
                    maker,
                    maker.map_or_else(
                        || Step { name: Some(name.clone()), by, ..leaf(depth, Kind::Document, run.run.clone()) },
                        |on| item_step(run, on, depth, Kind::Item),
                    ),
                )
            }
            // `Walk::imported` handles what comes from elsewhere.
            (Source::Elsewhere(_) | Source::Documents, _) => continue,
        };
        consumed.extend(maker);
        next.push(Next {
            step: Step { input: Some(key.clone()), product, sha256: Some(input.digest), ..step },
            run: maker.map(|_| index),
        });
    }
    let after = run.state.graph.dependencies(at).iter().filter(|on| !consumed.contains(on));
    next.extend(after.map(|on| Next { step: item_step(run, *on, depth, Kind::Item), run: Some(index) }));
    next
}

errors! {
    /// Failures to trace origins.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NotSaid "usage" 2: "say which item: RUN/ITEM, or RUN/ITEM:outputs/PATH";
    NoProduct(String) "no-such-thing": "there is no product {0:?}";
    NoEvidence(String) "no-such-thing": "there is no evidence of the origin of {0}";
    Long "too-long": "there are more than {MAX_STEPS} steps";
    #[from] Trust(Box<trust::Error>), Verify(verify::Error), Run(query::Error), Blob(verified_stream::Error),
        Target(target::Error);
}
