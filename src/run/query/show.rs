//! Shows everything that is recorded about a run or an item.

pub use super::item_record::{ItemDocument, Record};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::store::{self, Store};
use crate::ledger::chain::Link;
use crate::model::claims::Reported;
use crate::model::digest::{Digest, Oid};
use crate::model::driver::{Because, DriverId};
use crate::model::entry::{Event, Exit, Grade, ItemReconciled, Product, RunSealed, Transcript, VerifiedBy};
use crate::model::manifest::Manifest;
use crate::model::name::{FilePath, ItemId, RunId};
use crate::model::outcomes::Outcomes;
use crate::model::pipeline::BlockEnded;
use crate::model::protected::ProtectedChange;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::View;
use super::attempts::AttemptShown;
use super::list::ItemStatus;
use super::log_entry::has_no_products;
use super::revisions::{self, Change};
use super::usage::{Attempts, RunUsage};

/// A run as data: what `show RUN --json` prints, and what pages and other answers are made of.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.show/1", rename_all = "camelCase")]
pub struct RunDocument<'a> {
    /// The run.
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
    /// The queue.
    pub queue: &'a str,
    /// The pattern that the queue follows.
    pub pattern: &'a str,
    /// The keys that can append.
    #[cfg_attr(feature = "schemas", schemars(with = "Vec<crate::model::formats::Fingerprint>"))]
    pub writers: Vec<&'a String>,
    /// The sealed pipelines, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pipelines: BTreeMap<String, Digest>,
    /// The files that were sealed with the plan.
    pub artifacts: BTreeMap<FilePath, Digest>,
    /// The time of its submission.
    pub submitted_at: Moment,
    /// The actor.
    pub submitted_by: &'a str,
    /// The program and its version.
    pub tool: &'a str,
    /// The number of entries.
    pub entries: usize,
    /// Whether it is sealed.
    pub sealed: bool,
    /// The root, if it is sealed.
    pub root: Option<Digest>,
    /// The reason of the closing.
    pub closed: Option<&'a str>,
    /// The reason of the cancellation.
    pub cancelled: Option<&'a str>,
    /// The highest revisions of its documents.
    pub documents: Vec<Change>,
    /// The outcome of its items.
    pub outcome: Outcomes,
    /// The goal that all items have; absent if they have several or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<&'a str>,
    /// Its items.
    pub items: Vec<ItemStatus>,
    /// The attempts of all items, in the order of their dispatches.
    pub attempts: Vec<AttemptShown<'a>>,
    /// The tokens and prices that the workers reported.
    pub usage: RunUsage,
    /// The products of other runs and threads, and the run that this one continues; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceShown>,
}

/// A source of a run outside it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct SourceShown {
    /// The name of the import, or of the continued run.
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
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Step<'a> {
    /// The entry.
    #[serde(skip)]
    pub link: &'a Link,
    /// The number of the entry.
    seq: u64,
    /// The time of the record.
    at: Moment,
    /// The actor.
    actor: &'a str,
    /// Its kind.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::entry_schema::EntryKind"))]
    kind: &'static str,
    /// The attempt.
    pub attempt: u32,
    /// Whether it leaves the item done although its check failed; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    red: bool,
    /// `claimed` if the products are those of a commit that was made before; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<Grade>,
    /// False if it ends the item as done without products, although it could have some; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = false)))]
    handed_over: Option<bool>,
    /// The changes of its patch to protected files; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[cfg_attr(feature = "schemas", schemars(length(min = 1)))]
    pub protected: &'a [ProtectedChange],
    /// The reason, or the result of the check.
    pub reason: Option<String>,
    /// The exit of the command.
    pub exit: Option<Exit>,
    /// The duration of the attempt in milliseconds.
    pub duration_ms: Option<u64>,
    /// The output of the attempt.
    pub transcript: Option<Transcript>,
    /// The driver that holds or held the attempt, in a shared run.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<&'a DriverId>,
    /// The name of the driver's host; absent unless a dispatch names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    /// The job of the engine that started the driver; absent unless a dispatch names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    /// The driver that took the attempt from it; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    taker: Option<&'a DriverId>,
    /// The reason of the take-over; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<Because>,
    /// The results of the blocks of its pipeline; absent if it has none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub blocks: &'a [BlockEnded],
    /// Paths that its agent left behind and the patch omits; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub excluded: &'a [String],
    /// The worker's own summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    /// The worker's claims about itself; absent if it says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claims: Option<Reported>,
    /// The hash of the entry.
    hash: Digest,
    /// Its commit.
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
