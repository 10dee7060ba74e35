//! JSON output of operations on threads. Field names are those that clients of other systems use.

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::digest::Oid;
use crate::model::name::ThreadId;
use crate::model::thread::{Checkpoint, CheckpointId};
use crate::model::time::Moment;
use crate::thread::packet::Classification;
use crate::verify::{Ancestor, ThreadSnapshot};

use super::submodules::Behind;

/// The output of `thread list`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "git-handoff.threads/1")]
pub struct Threads {
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

/// A checkpoint and its state, for several answers.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/schema/checkpoint.json describes the fields")]
pub struct CheckpointState {
    pub checkpoint_id: CheckpointId,
    pub blob_id: Oid,
    pub blob_sha256: String,
    pub commit: Oid,
}

impl CheckpointState {
    pub(super) fn from_checkpoint(checkpoint: &Checkpoint) -> Self {
        let (checkpoint_id, state) = (checkpoint.id.clone(), checkpoint.content().state);
        Self { checkpoint_id, blob_id: state.oid, blob_sha256: state.sha256.hex(), commit: checkpoint.commit }
    }
}

/// The output of `checkpoint`, `fork` and `rollback`.
#[derive(Clone, Debug, Serialize)]
pub struct MadeCheckpoint {
    schema: &'static str,
    thread_id: String,
    /// The new checkpoint.
    #[serde(flatten)]
    pub state: CheckpointState,
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
    pub(super) fn new(checkpoint: &Checkpoint, schema: &'static str) -> Self {
        let (thread_id, state) =
            (checkpoint.entry.about.as_str().to_owned(), CheckpointState::from_checkpoint(checkpoint));
        Self { schema, thread_id, state, left_out: Vec::new(), too_large: Vec::new(), unchanged: false }
    }

    /// Returns the answer for a checkpoint that was not made, because the latest holds the same.
    pub(super) fn unchanged(latest: &Checkpoint) -> Self {
        Self { unchanged: true, ..Self::new(latest, Self::SAVED) }
    }
}

/// The output of `adopt`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "schema", rename = "git-handoff.adopt/1")]
pub struct AdoptedCheckpoint {
    /// `<thread>:<checkpoint>` of the source.
    pub(super) adopted_from: String,
    pub(super) new_thread_id: String,
    #[serde(flatten)]
    pub(super) made: CheckpointState,
    /// The key that signed the descriptor.
    pub(super) signer: String,
    /// Whether a key was unknown: this one, or one of the lineage, to the adopter or to an earlier
    /// one.
    pub(super) accepted_unknown_signer: bool,
    /// The lineage, nearest first.
    pub(super) lineage: Vec<Value>,
    /// The classification of the attached packet, if any.
    pub(super) packet: Option<Classification>,
    /// Whether the saved working tree was restored.
    pub(super) checked_out: bool,
    /// Submodules that are not at the saved commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Behind>,
    /// Always true: an unverified checkpoint is an error.
    pub(super) verified: bool,
}

/// Returns a checkpoint with its entry and content: a line of `thread log --json`.
pub fn logged(checkpoint: &Checkpoint) -> Value {
    let Checkpoint { id, commit, hash, entry, resumed } = checkpoint;
    let content = checkpoint.content();
    json!({
        "thread_id": entry.about.as_str(),
        "checkpoint_id": id,
        "kind": entry.event.kind(),
        "at": entry.at,
        "actor": entry.actor,
        "summary": content.summary,
        "blob_id": content.state.oid,
        "blob_sha256": content.state.sha256.hex(),
        "size": content.state.size,
        "packet": content.packet,
        "worktree": content.worktree,
        "base": content.base,
        "resumed": resumed,
        "hash": hash,
        "commit": commit,
        "entry": entry.to_json(),
    })
}

/// Returns the output of `thread show --json`: the same, with the thread's key and lineage, nearest
/// first. The keys of the lineage are not judged; see `thread verify`.
pub fn describe_checkpoint(checkpoint: &Checkpoint, sound: &ThreadSnapshot) -> Value {
    let mut answer = logged(checkpoint);
    answer["schema"] = "git-handoff.checkpoint-show/1".into();
    answer["signer"] = sound.key.as_str().into();
    answer["lineage"] = sound
        .lineage
        .iter()
        .map(|Ancestor { source, signer, accepted_unknown, .. }| {
            json!({
                "thread_id": source.thread,
                "checkpoint_id": source.checkpoint,
                "commit": source.commit,
                "signer": signer.fingerprint,
                "accepted_unknown_signer": accepted_unknown,
            })
        })
        .collect();
    answer
}
