//! The events of a run and of a repository log, with the fields of each kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::archive::ArchiveAdded;
use super::claims::{Claims, says_nothing};
use super::decision::{ItemDecided, LogDecided};
use super::digest::{Digest, Oid};
use super::document::{DocumentWritten, LogWritten};
use super::driver::{DriverId, RunShared};
pub use super::ended::{Again, ItemDropped, ItemEnded, RunEnded, RunSealed};
use super::entry::Error;
use super::extension::{Cause, RunConcluded, RunExtended};
use super::illegal::Illegal;
use super::log_recorded::LogRecorded;
use super::name::{FilePath, ItemId};
use super::outcome::{ItemReconciled, Outcome};
use super::plan::{Selector, Source};
use super::role::{Role, RunAdmitted, RunDismissed};
use super::state::RunState;
use super::submitted::RunSubmitted;
use super::thread::{Origin, ThreadCheckpointed, ThreadResumed};
use super::time::Moment;

/// The fields of `item.fired`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemFired {
    /// The item.
    pub item: ItemId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The dispatch manifest.
    pub manifest: Product,
    /// The resolved inputs by key.
    pub input_refs: BTreeMap<FilePath, InputRef>,
    /// The driver that holds the attempt; only in a shared run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverId>,
    /// The driver's claims about itself.
    #[serde(default, skip_serializing_if = "says_nothing")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<super::formats::Stated>"))]
    pub claims: Option<Box<Claims>>,
}

impl ItemFired {
    /// Returns the dispatch of an attempt that no driver holds.
    pub fn new(item: ItemId, attempt: u32, manifest: Product, input_refs: BTreeMap<FilePath, InputRef>) -> Self {
        Self { item, attempt, manifest, input_refs, driver: None, claims: None }
    }

    /// Returns the name of the driver's host, by its own word.
    pub fn host(&self) -> Option<&str> {
        self.claims.as_ref()?.host.as_deref()
    }

    /// Returns the job of the engine that started the driver, by its own word.
    pub fn job(&self) -> Option<&str> {
        self.claims.as_ref()?.job.as_deref()
    }
}

/// A resolved input: its source, and the digest of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InputRef {
    /// The source.
    pub from: Source,
    /// The product.
    pub select: Selector,
    /// The digest of the bytes.
    #[serde(rename = "ref")]
    pub digest: Digest,
}

/// Bytes that an entry names, such as a product: their SHA-256, their git object name, and their
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// The digest of the raw bytes.
    pub sha256: Digest,
    /// The blob.
    pub oid: Oid,
    /// The size in bytes.
    pub size: u64,
}

impl Product {
    /// Returns the names of bytes, in a repository with this hash function.
    pub fn from_bytes(bytes: &[u8], hash: gix::hash::Kind) -> Result<Self, Unnamed> {
        let oid = gix::objs::compute_hash(hash, gix::objs::Kind::Blob, bytes)
            .map(Oid)
            .map_err(|cause| Unnamed(Box::new(cause)))?;
        Ok(Self { sha256: Digest::compute(bytes), oid, size: bytes.len() as u64 })
    }
}

/// Bytes that were made to collide under SHA-1, and so have no object name.
#[derive(Debug, thiserror::Error)]
#[error("the bytes cannot be named by this repository's hash function; a repository of --object-format=sha256 can")]
pub struct Unnamed(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A kind of entry for the schema of entries.
#[cfg(feature = "schemas")]
pub(super) struct KindSchema {
    /// The name of its definition.
    pub(super) name: &'static str,
    /// The kind as written in entries.
    pub(super) kind: &'static str,
    /// The doc comment.
    pub(super) about: &'static str,
    /// The schema of its fields.
    pub(super) fields: schemars::Schema,
}

/// Defines the events by a table: the kind, the fields, the roles of which one is required, and the
/// function that applies the event to the state of a run. Without roles, any key of the run may
/// append it.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:literal => $variant:ident($fields:ident) by |$e:pat_param| $roles:expr
        $(, then $follow:expr)?;)*) => {
        /// An event with the fields of its kind.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "only entry 0 is so large, and a run has one")]
        pub enum Event {
            $($(#[doc = $doc])* $variant($fields),)*
        }

        impl Event {
            /// Returns the kind as written in entries.
            pub fn kind(&self) -> &'static str {
                match self { $(Event::$variant(_) => $kind),* }
            }

            /// Describes the kinds for the schema of entries.
            #[cfg(feature = "schemas")]
            pub(super) fn kinds(generator: &mut schemars::SchemaGenerator) -> Vec<KindSchema> {
                vec![$(KindSchema {
                    name: stringify!($variant),
                    kind: $kind,
                    about: concat!($($doc, "\n"),*),
                    fields: <$fields as schemars::JsonSchema>::json_schema(generator),
                }),*]
            }

            /// Returns the fields as a JSON object.
            pub(super) fn fields(&self) -> Value {
                match self { $(Event::$variant(fields) => serde_json::to_value(fields)),* }
                    .expect("event fields serialise to an object")
            }

            /// Parses the fields of a kind; refuses unknown ones.
            pub(super) fn from_fields(kind: &str, fields: Value) -> Result<Self, Error> {
                match kind {
                    $($kind => Ok(Event::$variant(
                        serde_json::from_value(fields).map_err(|source| Error::Fields { kind: kind.to_owned(), source })?,
                    )),)*
                    _ => Err(Error::Kind(kind.to_owned())),
                }
            }

            /// Returns the roles of which one is required, whatever the keys of the run hold.
            pub(super) fn roles(&self) -> &'static [Role] {
                use Role::{Approve, Document, Own, Seal, Work};
                match self { $(Event::$variant($e) => $roles),* }
            }

            /// Applies the event to the state of its run, or returns why it is illegal.
            pub(super) fn follow(&self, state: &mut RunState) -> Result<(), Illegal> {
                match self {
                    $($(Event::$variant(e) => $follow(state, e),)?)*
                    _ => Err(Illegal::Misplaced(self.kind())),
                }
            }
        }
    };
}

kinds! {
    /// The run was submitted; always and only entry 0.
    "run.submitted" => RunSubmitted(RunSubmitted) by |_| &[Own];
    /// A key got a role.
    "run.admitted" => RunAdmitted(RunAdmitted) by |_| &[Own], then RunState::expect_admission;
    /// A key lost its roles.
    "run.dismissed" => RunDismissed(RunDismissed) by |_| &[Own], then RunState::expect_dismissal;
    /// The run is driven through a remote from here on.
    "run.shared" => RunShared(RunShared) by |_| &[Own, Work], then RunState::share;
    /// An attempt was dispatched.
    "item.fired" => ItemFired(ItemFired) by |_| &[Work], then RunState::fire;
    /// An attempt ended with its final result, or an item failed before dispatch.
    "item.reconciled" => ItemReconciled(ItemReconciled) by |_| &[Work], then RunState::reconcile;
    /// A person approved or rejected an item. A statement is appended by the driver; its author is
    /// checked separately.
    "item.decided" => ItemDecided(ItemDecided) by |e| if e.said.is_some() { &[Own, Work] } else { &[Approve] },
        then RunState::decide;
    /// An attempt failed and another will follow.
    "item.retried" => ItemRetried(ItemEnded) by |_| &[Work], then RunState::retry;
    /// An attempt was lost to a crash, or an operator requested a retry.
    "item.requeued" => ItemRequeued(ItemEnded) by |e| if e.reason == Again::Crash { &[Work] } else { &[Own, Work] },
        then RunState::requeue;
    /// The item is skipped because a dependency did not get done.
    "item.skipped" => ItemSkipped(ItemDropped) by |_| &[Own, Work], then RunState::skip;
    /// The item was cancelled, with its running attempt if there is one.
    "item.cancelled" => ItemCancelled(ItemDropped) by |_| &[Own], then RunState::cancel;
    /// A revision of a document was added.
    "document.written" => DocumentWritten(DocumentWritten)
        by |e| if e.said.is_some() { &[Own, Work] } else { &[Document] }, then RunState::write_document;
    /// Items were added to the run. A rule's effect is no decision: any key can apply rules, and
    /// `verify` evaluates them again.
    "run.extended" => RunExtended(RunExtended) by |e| if e.cause == Cause::Actor { &[Own] } else { &[] },
        then RunState::expect_items;
    /// A rule recorded an outcome of the run.
    "run.concluded" => RunConcluded(RunConcluded) by |_| &[], then RunState::conclude;
    /// The run was closed; unfinished items stay unfinished.
    "run.closed" => RunClosed(RunEnded) by |_| &[Own, Work], then RunState::close;
    /// The whole run was cancelled.
    "run.cancelled" => RunCancelled(RunEnded) by |_| &[Own], then RunState::cancel_run;
    /// The last entry: the Merkle root of all entries before it.
    "run.sealed" => RunSealed(RunSealed) by |_| &[Seal], then RunState::seal;
    /// In a repository log: a run or thread has an entry.
    "log.recorded" => LogRecorded(LogRecorded) by |_| &[Own];
    /// In a repository log: its key decided about an item of another key's run.
    "log.decided" => LogDecided(LogDecided) by |_| &[Own];
    /// In a repository log: its key wrote a document for another key's run.
    "log.written" => LogWritten(LogWritten) by |_| &[Own];
    /// A state was saved. This and all following events are those of threads and archives.
    "thread.checkpointed" => ThreadCheckpointed(ThreadCheckpointed) by |_| &[Own];
    /// The latest checkpoint was resumed.
    "thread.resumed" => ThreadResumed(ThreadResumed) by |_| &[Own];
    /// In an archive: runs were added.
    "archive.added" => ArchiveAdded(ArchiveAdded) by |_| &[Own];
}

impl Event {
    /// Returns true if the event belongs to the chain of a run.
    pub fn is_of_run(&self) -> bool {
        ["run.", "item.", "document."].iter().any(|beginning| self.kind().starts_with(beginning))
    }

    /// Returns the end of an item, if this event is that.
    pub fn end_of(&self, item: &ItemId) -> Option<&ItemReconciled> {
        match self {
            Event::ItemReconciled(e) if e.item == *item => Some(e),
            _ => None,
        }
    }

    /// Returns the fingerprint of the log's key, for an event of a log.
    pub fn log(&self) -> Option<&str> {
        match self {
            Event::LogRecorded(e) => Some(&e.log),
            Event::LogDecided(e) => Some(&e.log),
            Event::LogWritten(e) => Some(&e.log),
            _ => None,
        }
    }

    /// Returns the time of a statement whose entry is dated later.
    pub fn made(&self) -> Option<Moment> {
        match self {
            Event::LogDecided(e) => e.made,
            Event::LogWritten(e) => e.made,
            _ => None,
        }
    }

    /// Returns a statement with a time of its own, or `None` for an event dated by its entry.
    #[must_use]
    pub fn with_made(mut self, made: Option<Moment>) -> Self {
        match &mut self {
            Event::LogDecided(e) => e.made = made,
            Event::LogWritten(e) => e.made = made,
            _ => {}
        }
        self
    }

    /// Returns the additional parents of the entry's commit, in order.
    pub fn further_parents(&self) -> Vec<Oid> {
        match self {
            Event::ThreadCheckpointed(e) => e.origin.iter().filter_map(Origin::parent).collect(),
            Event::ArchiveAdded(e) => e.runs.values().map(|run| run.commit).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the item and attempt of the event.
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

    /// Returns the status in the subject line.
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

    /// Returns what people read of the event after its subject line, such as a reason.
    pub fn details(&self) -> Option<String> {
        match self {
            Event::ItemReconciled(e) => e.details().map(str::to_owned),
            Event::ItemRetried(e) | Event::ItemRequeued(e) => e.details(),
            Event::ItemSkipped(e) | Event::ItemCancelled(e) => Some(e.details()),
            Event::RunClosed(e) | Event::RunCancelled(e) => Some(e.details()),
            Event::RunAdmitted(e) => Some(e.details()),
            Event::RunDismissed(e) => Some(e.details()),
            _ => None,
        }
    }

    /// Returns the driver that recorded the event, if it names one.
    pub fn author(&self) -> Option<&DriverId> {
        match self {
            Self::ItemFired(e) => e.driver.as_ref(),
            Self::ItemReconciled(e) => e.driver.as_ref(),
            Self::ItemRequeued(e) if e.because.is_some() => e.taker.as_ref(),
            Self::ItemRetried(e) | Self::ItemRequeued(e) => e.driver.as_ref(),
            _ => None,
        }
    }
}
