//! JSON output of operations on threads. Field names are those that clients of other systems use.

use serde::Serialize;
use serde_json::Value;

use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Product, Worktree};
use crate::model::name::ThreadId;
use crate::model::thread::{Checkpoint, CheckpointId};
use crate::model::time::Moment;
use crate::thread::packet::Classification;
use crate::verify::{Ancestor, ThreadSnapshot};

use super::submodules::Behind;

/// The output of `thread list`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.threads/1")]
pub struct Threads {
    /// The threads, in order of name.
    pub threads: Vec<ThreadSummary>,
}

/// A thread in a list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ThreadSummary {
    /// The thread.
    pub thread_id: ThreadId,
    /// The number of checkpoints; `None` if unreadable.
    pub checkpoints: Option<usize>,
    /// The details of a readable thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<CheckpointId>,
    /// The time of the last entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// The summary of the last checkpoint, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::TextOrNull"))]
    pub summary: Option<Option<String>>,
    /// The reason why it is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A checkpoint and its state, for several answers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CheckpointState {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The blob that holds the state.
    pub blob_id: Oid,
    /// Its SHA-256.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::HexDigest"))]
    pub blob_sha256: String,
    /// The commit of the entry.
    pub commit: Oid,
}

impl CheckpointState {
    pub(super) fn from_checkpoint(checkpoint: &Checkpoint) -> Self {
        let (checkpoint_id, state) = (checkpoint.id.clone(), checkpoint.content().state);
        Self { checkpoint_id, blob_id: state.oid, blob_sha256: state.sha256.hex(), commit: checkpoint.commit }
    }
}

/// The output of `fork` and `rollback`: the new checkpoint.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct NewCheckpoint {
    #[cfg_attr(feature = "schemas", schemars(skip))]
    schema: &'static str,
    /// The thread.
    thread_id: ThreadId,
    /// The new checkpoint.
    #[serde(flatten)]
    pub state: CheckpointState,
}

impl NewCheckpoint {
    /// The schema of `fork`.
    pub(super) const FORKED: &str = "git-handoff.fork/1";
    /// The schema of `rollback`.
    pub(super) const ROLLED_BACK: &str = "git-handoff.rollback/1";

    /// Returns the answer for a new checkpoint of a thread.
    pub(super) fn new(thread: &ThreadId, checkpoint: &Checkpoint, schema: &'static str) -> Self {
        Self { schema, thread_id: thread.clone(), state: CheckpointState::from_checkpoint(checkpoint) }
    }
}

/// The output of `checkpoint`: the new checkpoint.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MadeCheckpoint {
    /// The checkpoint.
    #[serde(flatten)]
    pub new: NewCheckpoint,
    /// The other worktrees of the repository below the working tree, and untracked files above
    /// `handoff.maxProductSize`. The checkpoint does not include them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Those of `left_out` that are files above the limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_large: Vec<String>,
    /// True if nothing was appended (`--if-changed`), because this latest checkpoint holds the
    /// same; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub unchanged: bool,
}

impl MadeCheckpoint {
    /// The schema of `checkpoint`.
    const SAVED: &str = "git-handoff.checkpoint/1";

    /// Returns the answer for a new checkpoint.
    pub(super) fn new(thread: &ThreadId, checkpoint: &Checkpoint) -> Self {
        let new = NewCheckpoint::new(thread, checkpoint, Self::SAVED);
        Self { new, left_out: Vec::new(), too_large: Vec::new(), unchanged: false }
    }

    /// Returns the answer for a checkpoint that was not made, because the latest holds the same.
    pub(super) fn unchanged(thread: &ThreadId, latest: &Checkpoint) -> Self {
        Self { unchanged: true, ..Self::new(thread, latest) }
    }
}

/// The output of `adopt`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.adopt/1")]
pub struct AdoptedCheckpoint {
    /// `<thread>:<checkpoint>` of the source.
    pub(super) adopted_from: String,
    /// The thread that begins with it.
    #[cfg_attr(feature = "schemas", schemars(with = "ThreadId"))]
    pub(super) new_thread_id: String,
    #[serde(flatten)]
    pub(super) made: CheckpointState,
    /// The key that signed the descriptor.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    pub(super) signer: String,
    /// Whether a key was unknown: this one, or one of the lineage, to the adopter or to an earlier
    /// one.
    pub(super) accepted_unknown_signer: bool,
    /// The lineage, nearest first.
    pub(super) lineage: Vec<Ancestor>,
    /// The classification of the attached packet, if any.
    pub(super) packet: Option<Classification>,
    /// Whether the saved working tree was restored.
    pub(super) checked_out: bool,
    /// Submodules that are not at the saved commit; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Behind>,
    /// Always true: an unverified checkpoint is an error.
    #[cfg_attr(feature = "schemas", schemars(extend("const" = true)))]
    pub(super) verified: bool,
}

/// A checkpoint with its entry and content: a line of `thread log`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CheckpointShown<'a> {
    /// The thread.
    #[cfg_attr(feature = "schemas", schemars(with = "ThreadId"))]
    thread_id: &'a str,
    /// The checkpoint.
    checkpoint_id: &'a CheckpointId,
    /// The kind of its entry.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::entry_schema::EntryKind"))]
    kind: &'static str,
    /// The time of the record.
    at: Moment,
    /// The actor.
    actor: &'a str,
    /// The summary.
    summary: Option<&'a str>,
    /// The blob that holds the state.
    blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::HexDigest"))]
    blob_sha256: String,
    /// Its size in bytes.
    size: u64,
    /// The packet.
    packet: Option<Product>,
    /// The saved working tree.
    worktree: Option<&'a Worktree>,
    /// The commit that was checked out.
    base: Option<Oid>,
    /// The times at which it was resumed.
    resumed: &'a [Moment],
    /// The hash of the entry.
    hash: Digest,
    /// Its commit.
    commit: Oid,
    /// The entry as it is signed.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::entry::Entry"))]
    entry: Value,
}

/// All that is recorded about a checkpoint: the output of `thread show`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "git-handoff.checkpoint-show/1")]
pub struct CheckpointRecord<'a> {
    /// The checkpoint.
    #[serde(flatten)]
    checkpoint: CheckpointShown<'a>,
    /// The key of the thread.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    signer: &'a str,
    /// The threads that it descends from, the nearest first, without a judgement of keys, which
    /// `thread verify` makes.
    lineage: Vec<AncestorShown<'a>>,
}

/// A checkpoint of another thread, from which a thread descends.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct AncestorShown<'a> {
    /// The thread.
    thread_id: &'a ThreadId,
    /// The checkpoint.
    checkpoint_id: &'a CheckpointId,
    /// Its commit.
    commit: Oid,
    /// The key of the thread.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
    signer: &'a str,
    /// Whether it was adopted although its key was unknown.
    accepted_unknown_signer: bool,
}

impl<'a> CheckpointShown<'a> {
    /// Returns a checkpoint with its entry and content.
    pub fn new(checkpoint: &'a Checkpoint) -> Self {
        let Checkpoint { id, commit, hash, entry, resumed } = checkpoint;
        let content = checkpoint.content();
        Self {
            thread_id: entry.about.as_str(),
            checkpoint_id: id,
            kind: entry.event.kind(),
            at: entry.at,
            actor: &entry.actor,
            summary: content.summary.as_deref(),
            blob_id: content.state.oid,
            blob_sha256: content.state.sha256.hex(),
            size: content.state.size,
            packet: content.packet,
            worktree: content.worktree.as_ref(),
            base: content.base,
            resumed,
            hash: *hash,
            commit: *commit,
            entry: entry.to_json(),
        }
    }
}

impl<'a> CheckpointRecord<'a> {
    /// Returns a checkpoint with the key and the lineage of its thread.
    pub fn new(checkpoint: &'a Checkpoint, sound: &'a ThreadSnapshot) -> Self {
        let lineage = sound.lineage.iter().map(|ancestor| AncestorShown {
            thread_id: &ancestor.source.thread,
            checkpoint_id: &ancestor.source.checkpoint,
            commit: ancestor.source.commit,
            signer: &ancestor.signer.fingerprint,
            accepted_unknown_signer: ancestor.accepted_unknown,
        });
        Self { checkpoint: CheckpointShown::new(checkpoint), signer: &sound.key, lineage: lineage.collect() }
    }
}
