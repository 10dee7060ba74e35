//! The events of a run and of a repository log, with the fields of each kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::archive::ArchiveAdded;
use super::decision::{ItemDecided, LogDecided};
use super::digest::{Digest, Oid};
use super::document::{DocumentWritten, LogWritten};
use super::entry::Error;
use super::extension::{RunConcluded, RunExtended};
use super::log_event::{LogSealed, LogSubmitted, LogThread};
use super::name::{FilePath, ItemId};
use super::outcome::{Exit, Transcript, Verified};
use super::pipeline::BlockEnded;
use super::plan::{ProductKey, Selector, Source};
use super::reused::Reused;
use super::role::RunAdmitted;
use super::submitted::RunSubmitted;
use super::thread::{ThreadAdopted, ThreadCheckpointed, ThreadForked, ThreadResumed, ThreadRolledBack};
use super::time::Moment;

/// What happened, with the fields of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The run was submitted; entry 0 of a run and only it.
    RunSubmitted(RunSubmitted),
    /// A key got a role.
    RunAdmitted(RunAdmitted),
    /// An attempt was dispatched.
    ItemFired(ItemFired),
    /// An attempt came to its final result, or an item failed before dispatch.
    ItemReconciled(ItemReconciled),
    /// Somebody approved or rejected what an item stands for.
    ItemDecided(ItemDecided),
    /// An attempt failed and another will follow.
    ItemRetried(ItemEnded),
    /// An attempt was lost to a crash, or an operator asked for the item again.
    ItemRequeued(ItemEnded),
    /// The item will not run because something it depends on did not get done.
    ItemSkipped(ItemDropped),
    /// The item was cancelled, with its running attempt if there is one.
    ItemCancelled(ItemDropped),
    /// A revision of a document was put on the run.
    DocumentWritten(DocumentWritten),
    /// Items were added to the run.
    RunExtended(RunExtended),
    /// A rule has the run say what came of it.
    RunConcluded(RunConcluded),
    /// The run was closed: what is not done stays so.
    RunClosed(RunEnded),
    /// The whole run was cancelled.
    RunCancelled(RunEnded),
    /// The last entry: the Merkle root over all before it.
    RunSealed(RunSealed),
    /// In a repository log: a run was submitted.
    LogSubmitted(LogSubmitted),
    /// In a repository log: a run was sealed.
    LogSealed(LogSealed),
    /// In a repository log: a thread got an entry.
    LogThread(LogThread),
    /// In a repository log: its key decided about an item of somebody else's run.
    LogDecided(LogDecided),
    /// In a repository log: its key wrote a document for somebody else's run.
    LogWritten(LogWritten),
    /// A state was saved; in a thread, as all that follow.
    ThreadCheckpointed(ThreadCheckpointed),
    /// The thread began as another's checkpoint that was offered; entry 0 only.
    ThreadAdopted(ThreadAdopted),
    /// The thread began as another's checkpoint; entry 0 only.
    ThreadForked(ThreadForked),
    /// An earlier checkpoint's state became the latest again.
    ThreadRolledBack(ThreadRolledBack),
    /// The latest state was handed out to go on from.
    ThreadResumed(ThreadResumed),
    /// In an archive: it holds further runs.
    ArchiveAdded(ArchiveAdded),
}

/// The fields of `item.fired`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemFired {
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The digest of the dispatch manifest.
    pub manifest: Digest,
    /// What each input key was resolved to.
    pub input_refs: BTreeMap<FilePath, InputRef>,
}

/// What an input key was resolved to: the need, and the digest of the bytes that answered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputRef {
    /// Where the bytes came from.
    pub from: Source,
    /// Which of its products.
    pub select: Selector,
    /// The digest of the bytes.
    #[serde(rename = "ref")]
    pub digest: Digest,
}

/// The fields of `item.reconciled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemReconciled {
    /// The item.
    pub item: ItemId,
    /// The attempt that ended; 0 where nothing was dispatched.
    pub attempt: u32,
    /// How it ended.
    pub status: Outcome,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the process ended; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Milliseconds from dispatch to the end of capture.
    pub duration_ms: u64,
    /// What the item hands over; empty unless it is done.
    pub products: BTreeMap<ProductKey, Product>,
    /// What the verify command, or the item itself, said of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verified>,
    /// The captured stdout and stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Transcript>,
    /// Where the products come from, if nothing was run: the item of another run that had just the same to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Reused>,
    /// What became of each block that was run; none of an item without a pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockEnded>,
    /// What the worker says that it did: a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The final status of an attempt that ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The executor exited with 0 and its products are recorded.
    Done,
    /// Anything else.
    Failed,
}

/// One product: its bytes by SHA-256, by git object name, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// The digest of the raw bytes.
    pub sha256: Digest,
    /// The blob that holds them.
    pub oid: Oid,
    /// How many there are.
    pub size: u64,
}

/// The fields of `item.retried` and `item.requeued`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemEnded {
    /// The item.
    pub item: ItemId,
    /// The attempt that ended; 0 where there was none.
    pub attempt: u32,
    /// Why it goes round again.
    pub reason: Again,
    /// A sentence about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How the process ended; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Milliseconds from dispatch to the end, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The captured stdout and stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Transcript>,
    /// What became of each block that was run; none of an item without a pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockEnded>,
    /// The moment before which the next attempt is not dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
}

/// Why an item goes round again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Again {
    /// The attempt failed and attempts are left.
    Failure,
    /// The driver died while the attempt ran.
    Crash,
    /// An operator asked for it.
    Operator,
}

/// The fields of `item.skipped` and `item.cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemDropped {
    /// The item.
    pub item: ItemId,
    /// The latest attempt, which ends with this if it was running; 0 where there was none.
    pub attempt: u32,
    /// Why.
    pub reason: String,
}

/// The fields of `run.closed` and `run.cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunEnded {
    /// Why.
    pub reason: String,
}

/// The fields of `run.sealed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSealed {
    /// The RFC 6962 tree hash over the leaf hashes of all entries before this one.
    pub root: Digest,
    /// How many entries that is.
    pub entries: u64,
    /// How many items ended with each status; statuses of no item are left out.
    pub counts: BTreeMap<String, u64>,
    /// The rules that stopped before the run was done, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped: BTreeMap<ItemId, String>,
}

/// Pairs each kind with its variant, once for both directions.
macro_rules! kinds {
    ($($kind:literal => $variant:ident),* $(,)?) => {
        impl Event {
            /// Returns the event's kind as entries write it.
            pub fn kind(&self) -> &'static str {
                match self { $(Event::$variant(_) => $kind),* }
            }

            /// Returns the fields of the kind as a JSON object.
            pub(super) fn fields(&self) -> Value {
                match self { $(Event::$variant(fields) => serde_json::to_value(fields)),* }
                    .expect("event fields serialise to an object")
            }

            /// Reads the fields of a kind; refuses any that it does not have.
            pub(super) fn from_fields(kind: &str, fields: Value) -> Result<Self, Error> {
                match kind {
                    $($kind => Ok(Event::$variant(
                        serde_json::from_value(fields).map_err(|source| Error::Fields { kind: kind.to_owned(), source })?,
                    )),)*
                    _ => Err(Error::Kind(kind.to_owned())),
                }
            }
        }
    };
}

kinds! {
    "run.submitted" => RunSubmitted,
    "run.admitted" => RunAdmitted,
    "item.fired" => ItemFired,
    "item.reconciled" => ItemReconciled,
    "item.decided" => ItemDecided,
    "item.retried" => ItemRetried,
    "item.requeued" => ItemRequeued,
    "item.skipped" => ItemSkipped,
    "item.cancelled" => ItemCancelled,
    "document.written" => DocumentWritten,
    "run.extended" => RunExtended,
    "run.concluded" => RunConcluded,
    "run.closed" => RunClosed,
    "run.cancelled" => RunCancelled,
    "run.sealed" => RunSealed,
    "log.submitted" => LogSubmitted,
    "log.sealed" => LogSealed,
    "log.thread" => LogThread,
    "log.decided" => LogDecided,
    "log.written" => LogWritten,
    "thread.checkpointed" => ThreadCheckpointed,
    "thread.adopted" => ThreadAdopted,
    "thread.forked" => ThreadForked,
    "thread.rolled-back" => ThreadRolledBack,
    "thread.resumed" => ThreadResumed,
    "archive.added" => ArchiveAdded,
}

impl Event {
    /// Whether entries of a kind carry the header field `thread` instead of `run`.
    pub(super) fn is_of_thread(kind: &str) -> bool {
        kind.starts_with("thread.") || kind == "log.thread"
    }

    /// Whether entries of a kind carry the header field `archive` instead of `run`.
    pub(super) fn is_of_archive(kind: &str) -> bool {
        kind.starts_with("archive.")
    }

    /// Returns whether entries of the event's kind stand in the chain of a run, and not in a log or a thread.
    pub fn is_of_run(&self) -> bool {
        ["run.", "item.", "document."].iter().any(|beginning| self.kind().starts_with(beginning))
    }

    /// Returns the fingerprint of the key whose log it belongs to, if any.
    pub fn log(&self) -> Option<&str> {
        match self {
            Event::LogSubmitted(e) => Some(&e.log),
            Event::LogSealed(e) => Some(&e.log),
            Event::LogThread(e) => Some(&e.log),
            Event::LogDecided(e) => Some(&e.log),
            Event::LogWritten(e) => Some(&e.log),
            _ => None,
        }
    }

    /// Returns when a statement was made, where its entry is dated later.
    pub fn made(&self) -> Option<Moment> {
        match self {
            Event::LogDecided(e) => e.made,
            Event::LogWritten(e) => e.made,
            _ => None,
        }
    }

    /// Returns the event as one that was made at a moment, if it is a statement; `None` for one that is dated by its entry.
    #[must_use]
    pub fn with_made(mut self, made: Option<Moment>) -> Self {
        match &mut self {
            Event::LogDecided(e) => e.made = made,
            Event::LogWritten(e) => e.made = made,
            _ => {}
        }
        self
    }

    /// Returns the further parents of the entry's commit, in order: what these hold travels along.
    pub fn further_parents(&self) -> Vec<Oid> {
        match self {
            Event::ThreadCheckpointed(e) => e.run.iter().map(|tie| tie.commit).collect(),
            Event::ThreadAdopted(e) => vec![e.adopted_from.commit],
            Event::ThreadForked(e) => vec![e.from.commit],
            Event::ArchiveAdded(e) => e.runs.values().map(|run| run.commit).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the item that the event is about and the attempt it names.
    pub fn item(&self) -> Option<(&ItemId, u32)> {
        match self {
            Event::ItemFired(e) => Some((&e.item, e.attempt)),
            Event::ItemReconciled(e) => Some((&e.item, e.attempt)),
            Event::ItemDecided(e) => Some((&e.item, e.attempt)),
            Event::ItemRetried(e) | Event::ItemRequeued(e) => Some((&e.item, e.attempt)),
            Event::ItemSkipped(e) | Event::ItemCancelled(e) => Some((&e.item, e.attempt)),
            _ => None,
        }
    }

    /// Returns the status that the subject line shows.
    pub fn shown_status(&self) -> Option<&'static str> {
        match self {
            Event::ItemFired(_) => Some("running"),
            Event::ItemReconciled(e) => Some(if e.status == Outcome::Done { "done" } else { "failed" }),
            Event::ItemDecided(e) => Some(if e.status == Outcome::Done { "done" } else { "failed" }),
            Event::ItemRetried(_) | Event::ItemRequeued(_) => Some("pending"),
            Event::ItemSkipped(_) => Some("skipped"),
            Event::ItemCancelled(_) => Some("cancelled"),
            _ => None,
        }
    }
}
