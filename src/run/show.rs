//! Everything that is recorded about a run, or about one of its items.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::View;
use super::revisions;
use super::documents::DocumentShown;
use super::list::ItemStatus;
use super::log_entry::has_no_products;
use crate::git::store::{self, Store};
use crate::ledger::chain::Link;
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Cause, Event, Exit, InputRef, ItemReconciled, Product, RunSealed, Transcript, VerifiedBy};
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::outcomes::Outcomes;
use crate::model::pipeline::BlockEnded;
use crate::model::plan::{Item, ProductKey};
use crate::model::state::RunState;
use crate::model::time::Moment;

/// What the answers about a run and about an item are of.
const SCHEMA: &str = "git-handoff.show/1";

/// A run: what `show RUN --json` prints.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunShown<'a> {
    schema: &'static str,
    /// The run.
    pub run: &'a RunId,
    /// The ref that holds it.
    #[serde(rename = "ref")]
    pub reference: &'a str,
    /// What that points at.
    pub commit: Option<Oid>,
    /// The digest of the plan.
    pub plan: Digest,
    /// The commit that items start from.
    pub base: Oid,
    /// The queue.
    pub queue: &'a str,
    /// The pattern that the queue follows.
    pub pattern: &'a str,
    /// The keys that may append.
    pub writers: &'a [String],
    /// The pipelines that were sealed with it, by the names that items give them; only said where there are any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: &'a BTreeMap<String, Digest>,
    /// The files that were sealed with the plan.
    pub artifacts: &'a BTreeMap<FilePath, Digest>,
    /// When it was submitted.
    pub submitted_at: Moment,
    /// By whom.
    pub submitted_by: &'a str,
    /// With what.
    pub tool: &'a str,
    /// How many entries it has.
    pub entries: usize,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Its root, if it is.
    pub root: Option<Digest>,
    /// Why it was closed.
    pub closed: Option<&'a str>,
    /// Why it was cancelled.
    pub cancelled: Option<&'a str>,
    /// Its documents, each at its highest revision.
    pub documents: Vec<DocumentShown>,
    /// How its items came out.
    pub outcome: Outcomes,
    /// Its items.
    pub items: Vec<ItemStatus>,
}

impl<'a> RunShown<'a> {
    /// Answers what a run says that was read from a ref.
    pub fn of(view: &'a View, reference: &'a str) -> Self {
        let state = &view.state;
        let first = &view.links[0].entry;
        Self {
            schema: SCHEMA,
            run: &view.run,
            reference,
            commit: view.head.commit,
            plan: state.submitted.plan,
            base: state.submitted.base,
            queue: &state.submitted.queue,
            pattern: &state.submitted.pattern,
            writers: &state.submitted.writers,
            pipelines: &state.pipelines,
            artifacts: &state.submitted.artifacts,
            submitted_at: first.at,
            submitted_by: &first.actor,
            tool: &state.submitted.tool,
            entries: view.links.len(),
            sealed: state.sealed,
            root: seal(view).map(|seal| seal.root),
            closed: state.closed.as_deref(),
            cancelled: state.cancelled.as_deref(),
            documents: revisions::list(view).iter().map(DocumentShown::of).collect(),
            outcome: state.outcomes(),
            items: ItemStatus::all(view),
        }
    }
}

/// Returns the seal of a run.
pub fn seal(view: &View) -> Option<&RunSealed> {
    view.links.iter().find_map(|link| match &link.entry.event {
        Event::RunSealed(sealed) => Some(sealed),
        _ => None,
    })
}

/// What one entry says of an attempt, as far as it is worth showing.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// The entry.
    pub link: &'a Link,
    /// The attempt.
    pub attempt: u32,
    /// Why, or what the check came to.
    pub said: Option<String>,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// How long the attempt took.
    pub duration_ms: Option<u64>,
    /// What it said.
    pub transcript: Option<Transcript>,
    /// What became of the blocks of its pipeline.
    pub blocks: &'a [BlockEnded],
    /// What the worker says that it did.
    pub summary: Option<&'a str>,
}

impl<'a> Step<'a> {
    fn of(link: &'a Link, id: &ItemId) -> Option<Self> {
        let (_, attempt) = link.entry.event.item().filter(|(item, _)| *item == id)?;
        let plain = Self {
            link,
            attempt,
            said: None,
            exit: None,
            duration_ms: None,
            transcript: None,
            blocks: &[],
            summary: None,
        };
        Some(match &link.entry.event {
            Event::ItemReconciled(e) => Self {
                said: e.reason.clone().or_else(|| taken(e)).or_else(|| verified(e)),
                exit: e.exit,
                duration_ms: Some(e.duration_ms),
                transcript: e.transcript,
                blocks: &e.blocks,
                summary: e.summary.as_deref(),
                ..plain
            },
            Event::ItemRetried(e) | Event::ItemRequeued(e) => Self {
                said: e.detail.clone(),
                exit: e.exit,
                duration_ms: e.duration_ms,
                transcript: e.transcript,
                blocks: &e.blocks,
                ..plain
            },
            Event::ItemDecided(e) => {
                let message = e.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
                Self { said: Some(format!("{} by {}{message}", e.decision.word(), e.by)), ..plain }
            }
            Event::ItemSkipped(e) | Event::ItemCancelled(e) => Self { said: Some(e.reason.clone()), ..plain },
            _ => plain,
        })
    }
}

fn taken(e: &ItemReconciled) -> Option<String> {
    let from = e.reused.as_ref()?;
    Some(format!("reused from {from}"))
}

fn verified(e: &ItemReconciled) -> Option<String> {
    let verify = e.verify?;
    let passed = if verify.passed { "passed" } else { "did not pass" };
    let by = match verify.by {
        VerifiedBy::Command => "the verify command",
        VerifiedBy::Itself => "the item's own word",
    };
    Some(format!("verify {passed}, by {by}"))
}

/// Everything that is recorded about one item.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The run.
    pub view: &'a View,
    /// The item's position.
    pub at: usize,
    /// The manifest of its last attempt, where it is here.
    pub manifest: Option<Manifest>,
    /// What the entries say of it, oldest first.
    pub steps: Vec<Step<'a>>,
}

impl<'a> Record<'a> {
    /// Gathers what is recorded about the item at a position.
    pub fn gather(store: &Store, view: &'a View, at: usize) -> Result<Self, store::Error> {
        let id = &view.state.graph.item(at).id;
        let blob = match view.head.tree {
            Some(tree) => store.blob_at(tree, &view.state.layout().manifest(id))?,
            None => None,
        };
        // In a partial clone the manifest may be elsewhere; all else can be told without it.
        let bytes = blob.filter(|oid| store.contains(*oid)).map(|oid| store.read_blob(oid)).transpose()?;
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        let steps = view.links.iter().filter_map(|link| Step::of(link, id)).collect();
        Ok(Self { view, at, manifest, steps })
    }

    /// Returns the item.
    pub fn item(&self) -> &'a Item {
        self.view.state.graph.item(self.at)
    }

    /// Returns the entry that added the item, and what made it; none for an item of the plan.
    pub fn added(&self) -> Option<(&'a Link, &'a Cause)> {
        self.view.links.iter().find_map(|link| match &link.entry.event {
            Event::RunExtended(e) => e.items.contains_key(&self.item().id).then_some((link, &e.cause)),
            _ => None,
        })
    }

    /// Returns what it produced.
    pub fn products(&self) -> &'a BTreeMap<ProductKey, Product> {
        &self.view.state.items[self.at].products
    }

    /// Returns what it consumed.
    pub fn consumed(&self) -> &'a BTreeMap<FilePath, InputRef> {
        &self.view.state.items[self.at].inputs
    }
}

/// An item: what `show RUN/ITEM --json` prints, where it stands and all that is recorded about it in one object.
#[derive(Clone, Debug)]
pub struct ItemShown<'a> {
    /// Where it stands.
    pub status: ItemStatus,
    /// What is recorded about it.
    pub recorded: Recorded<'a>,
}

/// What an answer about an item has beyond where it stands.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded<'a> {
    schema: &'static str,
    /// The run.
    pub run: &'a RunId,
    /// What added it after the run was submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Added<'a>>,
    /// What runs it.
    pub executor: &'a str,
    /// What it is given.
    pub inputs: &'a Map<String, Value>,
    /// What it needs of others, each with the digest of what it consumed.
    pub needs: BTreeMap<String, Value>,
    /// What it produced.
    pub products: &'a BTreeMap<ProductKey, Product>,
    /// The manifest of its last attempt.
    pub manifest: Option<&'a Manifest>,
    /// What the entries say of it, oldest first.
    pub entries: Vec<StepShown<'a>>,
}

impl Serialize for ItemShown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown: Map<String, Value> = Map::new();
        for part in [serde_json::to_value(&self.status), serde_json::to_value(&self.recorded)] {
            match part.map_err(S::Error::custom)? {
                Value::Object(fields) => shown.extend(fields),
                other => return Err(S::Error::custom(format!("{other} is no object"))),
            }
        }
        shown.serialize(serializer)
    }
}

/// What added an item.
#[derive(Clone, Debug, Serialize)]
pub struct Added<'a> {
    /// The number of the entry.
    pub entry: u64,
    /// Who or what.
    pub cause: &'a Cause,
}

/// What one entry says of an attempt.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepShown<'a> {
    /// The number of the entry.
    pub seq: u64,
    /// When it was recorded.
    pub at: Moment,
    /// By whom.
    pub actor: &'a str,
    /// Its kind.
    pub kind: &'static str,
    /// The attempt.
    pub attempt: u32,
    /// Whether it leaves the item done although its check did not pass; only said where it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// False if it leaves the item done with nothing handed over, although it could have; only said where it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<bool>,
    /// Why, or what the check came to.
    pub reason: Option<&'a str>,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// How long the attempt took.
    pub duration_ms: Option<u64>,
    /// What it said.
    pub transcript: Option<Transcript>,
    /// What became of the blocks of its pipeline; only said where it has one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub blocks: &'a [BlockEnded],
    /// What the worker says that it did; only said where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    /// The hash of the entry.
    pub hash: Digest,
    /// Its commit.
    pub commit: Oid,
}

impl<'a> ItemShown<'a> {
    /// Answers what is recorded about an item.
    pub fn of(record: &'a Record<'a>) -> Self {
        let item = record.item();
        let need = |(key, need): (&FilePath, &crate::model::plan::Need)| {
            let consumed = record.consumed().get(key).map(|input| Value::from(input.digest.to_string()));
            let mut shown = need.to_json();
            shown["ref"] = consumed.unwrap_or_default();
            (key.to_string(), shown)
        };
        let recorded = Recorded {
            schema: SCHEMA,
            run: &record.view.run,
            added: record.added().map(|(link, cause)| Added { entry: link.entry.seq, cause }),
            executor: &item.executor,
            inputs: &item.inputs,
            needs: item.needs.iter().map(need).collect(),
            products: record.products(),
            manifest: record.manifest.as_ref(),
            entries: record.steps.iter().map(|step| StepShown::of(step, &record.view.state)).collect(),
        };
        Self { status: ItemStatus::of(record.view, record.at), recorded }
    }
}

impl<'a> StepShown<'a> {
    fn of(step: &'a Step<'a>, state: &RunState) -> Self {
        let Link { commit, hash, entry, .. } = step.link;
        Self {
            seq: entry.seq,
            at: entry.at,
            actor: &entry.actor,
            kind: entry.event.kind(),
            attempt: step.attempt,
            red: entry.event.is_red(),
            handed_over: has_no_products(step.link, state).then_some(false),
            reason: step.said.as_deref(),
            exit: step.exit,
            duration_ms: step.duration_ms,
            transcript: step.transcript,
            blocks: step.blocks,
            summary: step.summary,
            hash: *hash,
            commit: *commit,
        }
    }
}
