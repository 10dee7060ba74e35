//! JSON output of operations on threads. Field names are those that clients of other systems use.

use serde::Serialize;
use serde_json::Value;

use crate::model::digest::Oid;
use crate::model::entry::{Origin, Product, Worktree};
use crate::model::name::ThreadId;
use crate::model::thread::{Checkpoint, CheckpointId};
use crate::model::time::Moment;
use crate::thread::packet::Classification;
use crate::verify::{Ancestor, ThreadSnapshot};

use super::adopt::Adopted;
use super::submodules::Behind;

/// The output of `thread list`.
#[derive(Clone, Debug, Serialize)]
pub struct Threads {
    pub(super) schema: &'static str,
    /// The threads, in order of name.
    pub threads: Vec<ThreadSummary>,
}

/// A thread in a list.
#[derive(Clone, Debug, Serialize)]
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
    pub summary: Option<Option<String>>,
    /// The reason why it is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The output of `checkpoint`, `fork` and `rollback`.
#[derive(Clone, Debug, Serialize)]
pub struct MadeCheckpoint {
    schema: &'static str,
    /// The thread.
    pub thread_id: String,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The blob of the state.
    pub blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    pub blob_sha256: String,
    /// The commit of the entry.
    pub commit: Oid,
    /// Nested worktrees of the repository, and untracked files above the limit. The checkpoint does
    /// not include them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Those of them that are files above the limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_large: Vec<String>,
    /// True if nothing was appended, because this latest checkpoint holds the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
}

impl MadeCheckpoint {
    /// The schema of `checkpoint`.
    pub(super) const SAVED: &str = "git-handoff.checkpoint/1";
    /// The schema of `fork`.
    pub(super) const FORKED: &str = "git-handoff.fork/1";
    /// The schema of `rollback`.
    pub(super) const ROLLED_BACK: &str = "git-handoff.rollback/1";

    /// Returns the answer for a new checkpoint.
    pub(super) fn of(checkpoint: &Checkpoint, schema: &'static str) -> Self {
        let state = checkpoint.content().state;
        Self {
            schema,
            thread_id: checkpoint.entry.about.as_str().to_owned(),
            checkpoint_id: checkpoint.id.clone(),
            blob_id: state.oid,
            blob_sha256: state.sha256.hex(),
            commit: checkpoint.commit,
            left_out: Vec::new(),
            too_large: Vec::new(),
            unchanged: false,
        }
    }

    /// Returns the answer for a checkpoint that was not made, because the latest holds the same.
    pub(super) fn unchanged(latest: &Checkpoint) -> Self {
        Self { unchanged: true, ..Self::of(latest, Self::SAVED) }
    }
}

/// The output of `adopt`.
#[derive(Clone, Debug, Serialize)]
pub struct AdoptedCheckpoint {
    schema: &'static str,
    /// `<thread>:<checkpoint>` of the source.
    pub adopted_from: String,
    /// The new thread.
    pub new_thread_id: String,
    /// Its first checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The blob of the state.
    pub blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    pub blob_sha256: String,
    /// The commit of the entry.
    pub commit: Oid,
    /// The key that signed the descriptor.
    pub signer: String,
    /// Whether that key, or a key of the lineage, is unknown.
    pub accepted_unknown_signer: bool,
    /// The lineage, nearest first.
    pub lineage: Vec<Value>,
    /// The classification of the attached packet, if any.
    pub packet: Option<&'static str>,
    /// Whether the saved working tree was restored.
    pub checked_out: bool,
    /// Submodules that are not at the saved commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Behind>,
    /// Always true: an unverified checkpoint is an error.
    pub verified: bool,
}

impl AdoptedCheckpoint {
    /// Returns the answer for an adopted checkpoint.
    pub(super) fn of(adopted: &Adopted, checked_out: bool) -> Self {
        let (made, state) = (&adopted.made, adopted.made.content().state);
        Self {
            schema: "git-handoff.adopt/1",
            adopted_from: adopted.from.clone(),
            new_thread_id: made.entry.about.as_str().to_owned(),
            checkpoint_id: made.id.clone(),
            blob_id: state.oid,
            blob_sha256: state.sha256.hex(),
            commit: made.commit,
            signer: adopted.signer.clone(),
            accepted_unknown_signer: adopted.accepted_unknown,
            lineage: adopted.lineage.iter().map(Ancestor::to_json).collect(),
            packet: adopted.packet.map(Classification::as_str),
            checked_out,
            submodules: adopted.behind.clone(),
            verified: true,
        }
    }
}

/// A checkpoint with its entry and content: a line of `thread log --json`.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointShown {
    /// The thread.
    pub thread_id: String,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The kind of its entry.
    pub kind: &'static str,
    /// Its origin; for JSON, in the entry.
    #[serde(skip)]
    pub origin: Option<Origin>,
    /// The time of the entry.
    pub at: Moment,
    /// The actor.
    pub actor: String,
    /// The summary.
    pub summary: Option<String>,
    /// The blob of the state.
    pub blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    pub blob_sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// The packet.
    pub packet: Option<Product>,
    /// The saved working tree.
    pub worktree: Option<Worktree>,
    /// The commit that the work was based on.
    pub base: Option<Oid>,
    /// The time at which it was resumed.
    pub resumed: Vec<Moment>,
    /// The hash of the entry.
    pub hash: crate::model::digest::Digest,
    /// Its commit.
    pub commit: Oid,
    /// The signed entry.
    pub entry: Value,
    /// Fields of `thread show --json` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    /// The key of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The lineage, nearest first, without a judgement of keys; see `thread verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Vec<AncestorShown>>,
}

/// A checkpoint of another thread in the lineage.
#[derive(Clone, Debug, Serialize)]
pub struct AncestorShown {
    /// The thread.
    pub thread_id: ThreadId,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// Its commit.
    pub commit: Oid,
    /// The key of the thread.
    pub signer: String,
    /// Whether it was adopted with an unknown key.
    pub accepted_unknown_signer: bool,
}

impl CheckpointShown {
    /// Returns the record of a checkpoint.
    pub fn of(checkpoint: &Checkpoint) -> Self {
        let content = checkpoint.content();
        Self {
            thread_id: checkpoint.entry.about.as_str().to_owned(),
            checkpoint_id: checkpoint.id.clone(),
            kind: checkpoint.entry.event.kind(),
            origin: checkpoint.entry.event.origin().cloned(),
            at: checkpoint.entry.at,
            actor: checkpoint.entry.actor.clone(),
            summary: content.summary.clone(),
            blob_id: content.state.oid,
            blob_sha256: content.state.sha256.hex(),
            size: content.state.size,
            packet: content.packet,
            worktree: content.worktree.clone(),
            base: content.base,
            resumed: checkpoint.resumed.clone(),
            hash: checkpoint.hash,
            commit: checkpoint.commit,
            entry: checkpoint.entry.to_json(),
            schema: None,
            signer: None,
            lineage: None,
        }
    }

    /// Returns the record with the thread's key and lineage.
    pub fn whole(checkpoint: &Checkpoint, sound: &ThreadSnapshot) -> Self {
        let one = |ancestor: &Ancestor| AncestorShown {
            thread_id: ancestor.source.thread.clone(),
            checkpoint_id: ancestor.source.checkpoint.clone(),
            commit: ancestor.source.commit,
            signer: ancestor.signer.fingerprint.clone(),
            accepted_unknown_signer: ancestor.accepted_unknown,
        };
        Self {
            schema: Some("git-handoff.checkpoint-show/1"),
            signer: Some(sound.key.clone()),
            lineage: Some(sound.lineage.iter().map(one).collect()),
            ..Self::of(checkpoint)
        }
    }
}
