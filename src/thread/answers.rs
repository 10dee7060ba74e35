//! What operations on threads answer, as JSON has it. Names are those that clients of other systems know.

use serde::Serialize;
use serde_json::Value;

use crate::model::digest::Oid;
use crate::model::entry::{Product, Worktree};
use crate::model::name::ThreadId;
use crate::model::thread::{Checkpoint, CheckpointId};
use crate::model::time::Moment;
use crate::packet::Classification;
use crate::verify::{Ancestor, Sound};

use super::Made;
use super::adopt::Adopted;
use super::submodules::Behind;

/// The threads of a repository: what `thread list` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Threads {
    pub(super) schema: &'static str,
    /// In order of name.
    pub threads: Vec<ThreadSummary>,
}

/// A thread in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadSummary {
    /// The thread.
    pub thread_id: ThreadId,
    /// How many checkpoints it has; none where it cannot be read.
    pub checkpoints: Option<usize>,
    /// What is known of it where it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<CheckpointId>,
    /// When that was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// The line that was said about it, or none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Option<String>>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A checkpoint that was made: what `checkpoint`, `fork` and `rollback` print.
#[derive(Clone, Debug, Serialize)]
pub struct MadeCheckpoint {
    schema: &'static str,
    /// The thread.
    pub thread_id: ThreadId,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The blob that holds the state.
    pub blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    pub blob_sha256: String,
    /// The commit of the entry.
    pub commit: Oid,
    /// The other worktrees of the repository below the working tree, which the checkpoint does not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl MadeCheckpoint {
    /// What `checkpoint` answers with.
    pub(super) const SAVED: &str = "git-handoff.checkpoint/1";
    /// What `fork` answers with.
    pub(super) const FORKED: &str = "git-handoff.fork/1";
    /// What `rollback` answers with.
    pub(super) const ROLLED_BACK: &str = "git-handoff.rollback/1";

    /// Answers with what was made.
    pub(super) fn of(made: &Made, schema: &'static str) -> Self {
        Self {
            schema,
            thread_id: made.thread.clone(),
            checkpoint_id: made.checkpoint.clone(),
            blob_id: made.content.state.oid,
            blob_sha256: made.content.state.sha256.hex(),
            commit: made.link.commit,
            left_out: Vec::new(),
        }
    }
}

/// A checkpoint that was adopted: what `adopt` prints.
#[derive(Clone, Debug, Serialize)]
pub struct AdoptedCheckpoint {
    schema: &'static str,
    /// `<thread>:<checkpoint>` of the source.
    pub adopted_from: String,
    /// The thread that begins with it.
    pub new_thread_id: ThreadId,
    /// Its first checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The blob that holds the state.
    pub blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    pub blob_sha256: String,
    /// The commit of the entry.
    pub commit: Oid,
    /// The key that signed the descriptor.
    pub signer: String,
    /// Whether that key, or one that the thread goes back to, is not known.
    pub accepted_unknown_signer: bool,
    /// The threads that it goes back to, the nearest first.
    pub lineage: Vec<Value>,
    /// What the attached packet is, if there is one.
    pub packet: Option<&'static str>,
    /// Whether the saved working tree was put back.
    pub checked_out: bool,
    /// The submodules that are not at the commit that it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<Behind>,
    /// That everything was verified, without which there is no answer.
    pub verified: bool,
}

impl AdoptedCheckpoint {
    /// Answers what was adopted.
    pub(super) fn of(adopted: &Adopted, checked_out: bool) -> Self {
        let made = &adopted.made;
        Self {
            schema: "git-handoff.adopt/1",
            adopted_from: adopted.from.clone(),
            new_thread_id: made.thread.clone(),
            checkpoint_id: made.checkpoint.clone(),
            blob_id: made.content.state.oid,
            blob_sha256: made.content.state.sha256.hex(),
            commit: made.link.commit,
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

/// A checkpoint with its entry, and what it holds where the entry only points at it: a line of `thread log --json`.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointShown {
    /// The thread.
    pub thread_id: String,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// The kind of its entry.
    pub kind: &'static str,
    /// When it was recorded.
    pub at: Moment,
    /// By whom.
    pub actor: String,
    /// The line that was said about it.
    pub summary: Option<String>,
    /// The blob that holds the state.
    pub blob_id: Oid,
    /// Its SHA-256 in hexadecimal.
    pub blob_sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// The packet.
    pub packet: Option<Product>,
    /// The saved working tree.
    pub worktree: Option<Worktree>,
    /// The commit that the work stood on.
    pub base: Option<Oid>,
    /// When it was handed out to go on from.
    pub resumed: Vec<Moment>,
    /// The hash of the entry.
    pub hash: crate::model::digest::Digest,
    /// Its commit.
    pub commit: Oid,
    /// The entry as it is signed.
    pub entry: Value,
    /// What only `thread show --json` has.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<&'static str>,
    /// The key of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// The threads that it goes back to, the nearest first, without a judgement of keys: that is for `thread verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Vec<AncestorShown>>,
}

/// A checkpoint of another thread that a thread goes back to.
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
    /// Whether it was adopted although its key was not known.
    pub accepted_unknown_signer: bool,
}

impl CheckpointShown {
    /// Answers what is recorded about a checkpoint.
    pub fn of(checkpoint: &Checkpoint) -> Self {
        let content = &checkpoint.content;
        Self {
            thread_id: checkpoint.entry.about.as_str().to_owned(),
            checkpoint_id: checkpoint.id.clone(),
            kind: checkpoint.entry.event.kind(),
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

    /// Answers everything: with the thread's key, and what it goes back to.
    pub fn whole(checkpoint: &Checkpoint, sound: &Sound) -> Self {
        let one = |ancestor: &Ancestor| AncestorShown {
            thread_id: ancestor.thread.clone(),
            checkpoint_id: ancestor.checkpoint.clone(),
            commit: ancestor.commit,
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
