//! Shows everything that is recorded about a run or an item.

use std::collections::BTreeMap;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::View;
use super::documents::DocumentShown;
use super::list::ItemStatus;
use super::log_entry::has_no_products;
use super::revisions;
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

/// The format of both answers.
const SCHEMA: &str = "git-handoff.show/1";

/// A run, as `show RUN --json` prints it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "docs/schema/show.json describes the fields")]
pub struct RunShown<'a> {
    schema: &'static str,
    pub run: &'a RunId,
    /// The ref that holds it.
    #[serde(rename = "ref")]
    pub reference: &'a str,
    /// The target of the ref.
    pub commit: Option<Oid>,
    /// The digest of the plan.
    pub plan: Digest,
    /// The commit that items start from.
    pub base: Oid,
    pub queue: &'a str,
    pub pattern: &'a str,
    /// The keys that can append.
    pub writers: &'a [String],
    /// The sealed pipelines, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: &'a BTreeMap<String, Digest>,
    /// The files that were sealed with the plan.
    pub artifacts: &'a BTreeMap<FilePath, Digest>,
    pub submitted_at: Moment,
    pub submitted_by: &'a str,
    pub tool: &'a str,
    pub entries: usize,
    pub sealed: bool,
    /// The root, if it is sealed.
    pub root: Option<Digest>,
    pub closed: Option<&'a str>,
    pub cancelled: Option<&'a str>,
    /// The highest revisions of its documents.
    pub documents: Vec<DocumentShown>,
    pub outcome: Outcomes,
    pub items: Vec<ItemStatus>,
}

impl<'a> RunShown<'a> {
    /// Returns the answer about a run that was read from a ref.
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

/// Returns the seal of a run, or `None` if it is open.
pub fn seal(view: &View) -> Option<&RunSealed> {
    view.links.iter().find_map(|link| match &link.entry.event {
        Event::RunSealed(sealed) => Some(sealed),
        _ => None,
    })
}

/// An entry about an attempt.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Step<'a> {
    pub link: &'a Link,
    pub attempt: u32,
    /// The reason, or the result of the check.
    pub said: Option<String>,
    /// How the command ended.
    pub exit: Option<Exit>,
    pub duration_ms: Option<u64>,
    pub transcript: Option<Transcript>,
    /// The results of its pipeline's blocks.
    pub blocks: &'a [BlockEnded],
    /// The worker's own summary.
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

/// All that is recorded about an item.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Record<'a> {
    pub view: &'a View,
    pub at: usize,
    /// The manifest of its last attempt, if it is here.
    pub manifest: Option<Manifest>,
    /// The entries about it, oldest first.
    pub steps: Vec<Step<'a>>,
}

impl<'a> Record<'a> {
    /// Collects what is recorded about an item.
    pub fn gather(store: &Store, view: &'a View, at: usize) -> Result<Self, store::Error> {
        let id = &view.state.graph.item(at).id;
        let blob = match view.head.tree {
            Some(tree) => store.blob_at(tree, &view.state.layout().manifest(id))?,
            None => None,
        };
        // A partial clone may lack the manifest; the rest does not need it.
        let bytes = blob.filter(|oid| store.contains(*oid)).map(|oid| store.read_blob(oid)).transpose()?;
        let manifest = bytes.and_then(|bytes| Manifest::parse(&bytes).ok());
        let steps = view.links.iter().filter_map(|link| Step::of(link, id)).collect();
        Ok(Self { view, at, manifest, steps })
    }

    /// Returns the item.
    pub fn item(&self) -> &'a Item {
        self.view.state.graph.item(self.at)
    }

    /// Returns the entry that added the item, with the cause. Returns `None` for an item of the
    /// plan.
    pub fn added(&self) -> Option<(&'a Link, &'a Cause)> {
        self.view.links.iter().find_map(|link| match &link.entry.event {
            Event::RunExtended(e) => e.items.contains_key(&self.item().id).then_some((link, &e.cause)),
            _ => None,
        })
    }

    /// Returns its products.
    pub fn products(&self) -> &'a BTreeMap<ProductKey, Product> {
        &self.view.state.items[self.at].products
    }

    /// Returns its consumed inputs.
    pub fn consumed(&self) -> &'a BTreeMap<FilePath, InputRef> {
        &self.view.state.items[self.at].inputs
    }
}

/// An item, as `show RUN/ITEM --json` prints it: both parts in one object.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ItemShown<'a> {
    pub status: ItemStatus,
    pub recorded: Recorded<'a>,
}

/// The part of [`ItemShown`] besides its status.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/schema/show.json describes the fields")]
pub struct Recorded<'a> {
    schema: &'static str,
    pub run: &'a RunId,
    /// The entry that added it after the submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<Added<'a>>,
    pub executor: &'a str,
    pub inputs: &'a Map<String, Value>,
    /// Its needs, each with the digest of the consumed input.
    pub needs: BTreeMap<String, Value>,
    pub products: &'a BTreeMap<ProductKey, Product>,
    pub manifest: Option<&'a Manifest>,
    /// The entries about it, oldest first.
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

/// The entry that added an item.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Added<'a> {
    pub entry: u64,
    pub cause: &'a Cause,
}

/// An entry about an attempt.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "docs/schema/show.json describes the fields")]
pub struct StepShown<'a> {
    pub seq: u64,
    pub at: Moment,
    pub actor: &'a str,
    pub kind: &'static str,
    pub attempt: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub red: bool,
    /// False if it ends the item as done without products, although it could have some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<bool>,
    /// The reason, or the result of the check.
    pub reason: Option<&'a str>,
    pub exit: Option<Exit>,
    pub duration_ms: Option<u64>,
    pub transcript: Option<Transcript>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub blocks: &'a [BlockEnded],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    pub hash: Digest,
    pub commit: Oid,
}

impl<'a> ItemShown<'a> {
    /// Returns the answer about an item.
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
