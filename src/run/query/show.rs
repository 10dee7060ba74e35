//! Shows everything that is recorded about a run or an item.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::json;

use crate::git::store::{self, Store};
use crate::ledger::chain::Link;
use crate::model::any_error::AnyError;
use crate::model::claims::Reported;
use crate::model::digest::{Digest, Oid};
use crate::model::driver::{Because, DriverId};
use crate::model::entry::{
    Cause, Event, Exit, Grade, InputRef, ItemReconciled, Product, RunSealed, Transcript, VerifiedBy,
};
use crate::model::item_index::ItemIndex;
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::outcomes::Outcomes;
use crate::model::pipeline::BlockEnded;
use crate::model::plan::{Item, ProductKey};
use crate::model::protected::ProtectedChange;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::View;
use super::attempts::AttemptShown;
use super::list::ItemStatus;
use super::log_entry::has_no_products;
use super::revisions::{self, Change};
use super::saved::Saved;
use super::usage::{Attempts, RunUsage};

/// A run as data: what `show RUN --json` prints, and what pages and other answers are made of.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "git-handoff.show/1", rename_all = "camelCase")]
#[expect(missing_docs, reason = "docs/schema/show.json describes the fields")]
pub struct RunDocument<'a> {
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
    pub writers: Vec<&'a String>,
    /// The sealed pipelines, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<String, Digest>,
    /// The files that were sealed with the plan.
    pub artifacts: BTreeMap<FilePath, Digest>,
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
    pub documents: Vec<Change>,
    pub outcome: Outcomes,
    /// The goal that all items have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<&'a str>,
    pub items: Vec<ItemStatus>,
    pub attempts: Vec<AttemptShown<'a>>,
    /// The tokens and prices that the workers reported.
    pub usage: RunUsage,
    /// The products of other runs and threads, and the run that this one continues.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceShown>,
}

/// A source of a run outside it.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/schema/show.json describes the fields")]
pub struct SourceShown {
    pub name: String,
    /// The digest of the product, or the root of the continued run.
    pub sha256: Digest,
    /// The digest of the evidence of its origin.
    pub evidence: Digest,
}

impl<'a> RunDocument<'a> {
    /// Returns the answer about a run that was read from a ref.
    pub fn new(view: &'a View, reference: &'a str) -> Self {
        let state = &view.state;
        let first = &view.links[0].entry;
        let attempts = Attempts::from_view(view);
        Self {
            usage: RunUsage::from_attempts(&attempts),
            attempts: AttemptShown::all(view),
            sources: SourceShown::all(view),
            run: &view.run,
            reference,
            commit: view.head.commit,
            plan: state.submitted.plan.sha256,
            base: state.submitted.base,
            queue: &state.submitted.queue,
            pattern: &state.submitted.pattern,
            writers: state.submitted.roles.keys().collect(),
            pipelines: digests(&state.pipelines),
            artifacts: digests(&state.submitted.artifacts),
            submitted_at: first.at,
            submitted_by: &first.actor,
            tool: &state.submitted.tool,
            entries: view.links.len(),
            sealed: state.sealed,
            root: seal(view).map(|seal| seal.root),
            closed: state.closed.as_deref(),
            cancelled: state.cancelled.as_deref(),
            documents: revisions::list(view),
            outcome: state.outcomes(),
            goal: view.goal(),
            items: ItemStatus::with_attempts(view, &attempts),
        }
    }
}

impl SourceShown {
    /// Returns the sources of a run.
    pub fn all(view: &View) -> Vec<Self> {
        let submitted = &view.state.submitted;
        let imports = submitted.imports.iter().map(|(name, import)| Self {
            name: name.clone(),
            sha256: import.product.sha256,
            evidence: import.evidence.sha256,
        });
        let continues = submitted.continues.iter().map(|continues| Self {
            name: format!("{}, continued", continues.run),
            sha256: continues.root,
            evidence: continues.evidence.sha256,
        });
        imports.chain(continues).collect()
    }
}

/// Returns the digests of named bytes.
pub fn digests<K: Ord + Clone>(products: &BTreeMap<K, Product>) -> BTreeMap<K, Digest> {
    products.iter().map(|(name, bytes)| (name.clone(), bytes.sha256)).collect()
}

/// Reads a manifest that an entry names. Returns `None` if it is not that or not valid, or if a
/// partial clone lacks it.
pub(crate) fn manifest(store: &Store, product: &Product) -> Result<Option<Manifest>, store::Error> {
    let bytes = store.contains(product.oid).then(|| store.read_blob(product.oid)).transpose()?;
    let bytes = bytes.filter(|bytes| Digest::compute(bytes) == product.sha256);
    Ok(bytes.and_then(|bytes| Manifest::parse(&bytes).ok()))
}

/// Returns the seal of a run, or `None` if it is open.
pub fn seal(view: &View) -> Option<&RunSealed> {
    view.links.iter().find_map(|link| match &link.entry.event {
        Event::RunSealed(sealed) => Some(sealed),
        _ => None,
    })
}

/// An entry about an attempt.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "docs/schema/show.json describes the fields")]
pub struct Step<'a> {
    #[serde(skip)]
    pub link: &'a Link,
    seq: u64,
    at: Moment,
    actor: &'a str,
    kind: &'static str,
    pub attempt: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    red: bool,
    /// `claimed` if the products are those of a commit that was made before.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<Grade>,
    /// False if it ends the item as done without products, although it could have some.
    #[serde(skip_serializing_if = "Option::is_none")]
    handed_over: Option<bool>,
    /// The changes of its patch to protected files.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub protected: &'a [ProtectedChange],
    /// The reason, or the result of the check.
    pub reason: Option<String>,
    pub exit: Option<Exit>,
    pub duration_ms: Option<u64>,
    pub transcript: Option<Transcript>,
    /// The driver that holds or held the attempt, in a shared run.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<&'a DriverId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    /// The driver that took the attempt from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    taker: Option<&'a DriverId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<Because>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub blocks: &'a [BlockEnded],
    /// Paths that its agent left behind and the patch omits.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub excluded: &'a [String],
    /// The worker's own summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    /// The worker's claims about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Reported>,
    hash: Digest,
    commit: Oid,
}

impl<'a> Step<'a> {
    /// Returns the step of an entry, or `None` if it is not about the item.
    pub fn from_link(link: &'a Link, id: &ItemId, state: &RunState) -> Option<Self> {
        let (_, attempt) = link.entry.event.item().filter(|(item, _)| *item == id)?;
        let plain = Self::plain(link, attempt, state);
        Some(match &link.entry.event {
            Event::ItemFired(e) => Self { driver: e.driver.as_ref(), host: e.host(), job: e.job(), ..plain },
            Event::ItemReconciled(e) => Self {
                driver: e.driver.as_ref(),
                reason: e.reason.clone().or_else(|| reused(e)).or_else(|| verified(e)),
                exit: e.exit,
                duration_ms: Some(e.duration_ms),
                transcript: e.transcript,
                blocks: &e.blocks,
                protected: &e.protected,
                excluded: e.claims.as_ref().map_or(&[], |claims| &claims.excluded),
                summary: e.summary(),
                claims: Reported::new(e.claims.as_deref(), e.usage),
                ..plain
            },
            Event::ItemRetried(e) | Event::ItemRequeued(e) => Self {
                driver: e.driver.as_ref(),
                taker: e.taker.as_ref(),
                because: e.because,
                reason: e.detail.clone(),
                exit: e.exit,
                duration_ms: e.duration_ms,
                transcript: e.transcript,
                blocks: &e.blocks,
                claims: Reported::new(e.claims.as_deref(), e.usage),
                ..plain
            },
            Event::ItemDecided(e) => {
                let message = e.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
                Self { reason: Some(format!("{} by {}{message}", e.decision.word(), e.by)), ..plain }
            }
            Event::ItemSkipped(e) | Event::ItemCancelled(e) => Self { reason: Some(e.reason.clone()), ..plain },
            _ => plain,
        })
    }

    /// Returns the step with what entries of all kinds have.
    fn plain(link: &'a Link, attempt: u32, state: &RunState) -> Self {
        let Link { commit, hash, entry, .. } = link;
        Self {
            link,
            seq: entry.seq,
            at: entry.at,
            actor: &entry.actor,
            kind: entry.event.kind(),
            attempt,
            red: entry.event.is_red(),
            grade: entry.event.grade(),
            handed_over: has_no_products(link, state).then_some(false),
            protected: &[],
            reason: None,
            exit: None,
            duration_ms: None,
            transcript: None,
            driver: None,
            host: None,
            job: None,
            taker: None,
            because: None,
            blocks: &[],
            excluded: &[],
            summary: None,
            claims: None,
            hash: *hash,
            commit: *commit,
        }
    }
}

fn reused(e: &ItemReconciled) -> Option<String> {
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

/// All that is recorded about an item, as `show RUN/ITEM --json` prints it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Record<'a> {
    pub view: &'a View,
    pub at: ItemIndex,
    /// The manifest of its last attempt, if it is here.
    pub manifest: Option<Manifest>,
    /// The entries about it, oldest first.
    pub steps: Vec<Step<'a>>,
    /// The work of its failed and interrupted attempts that is saved beside the run.
    pub saved: Vec<Saved>,
}

impl<'a> Record<'a> {
    /// Collects what is recorded about an item.
    pub fn gather(store: &Store, view: &'a View, at: ItemIndex) -> Result<Self, AnyError> {
        let id = &view.state.graph.item(at).id;
        let dispatched = view.state.items[at].manifest.as_ref();
        let manifest = dispatched.map(|product| manifest(store, product)).transpose()?.flatten();
        let steps = view.links.iter().filter_map(|link| Step::from_link(link, id, &view.state)).collect();
        let saved = Saved::all(store, view)?.into_iter().filter(|saved| saved.item == *id).collect();
        Ok(Self { view, at, manifest, steps, saved })
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

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = self.item();
        let mut value = json!(ItemStatus::from_view(self.view, self.at));
        value["schema"] = json!("git-handoff.show/1");
        value["run"] = json!(self.view.run);
        value["base"] = json!(self.view.state.submitted.base);
        if let Some((link, cause)) = self.added() {
            value["added"] = json!({ "entry": link.entry.seq, "cause": cause });
        }
        value["executor"] = json!(item.executor);
        value["inputs"] = json!(item.inputs);
        value["needs"] = json!({});
        for (key, need) in &item.needs {
            let mut need = need.to_json();
            need["ref"] = json!(self.consumed().get(key).map(|input| input.digest));
            value["needs"][key.as_str()] = need;
        }
        value["products"] = json!(self.products());
        value["manifest"] = json!(self.manifest);
        value["entries"] = json!(self.steps);
        if !self.saved.is_empty() {
            value["saved"] = json!(self.saved);
        }
        value.serialize(serializer)
    }
}
