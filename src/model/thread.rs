//! Threads: the fields of their entries, and the checkpoints that follow from them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, Oid};
use super::entry::{Entry, Event, Product};
use super::name::{RunId, ThreadId};
use super::packet::Unclean;
use super::time::Moment;

/// The state's path in a thread's tree.
pub const STATE: &str = "state";
/// The packet's path in a thread's tree.
pub const PACKET: &str = "packet.json";
/// The working tree's folder in a thread's tree.
pub const WORKTREE: &str = "worktree";

/// The maximum length of a summary, in bytes.
pub const MAX_SUMMARY: usize = 1000;

/// The name of a checkpoint: `<seq>-<first 12 hex digits of its entry's leaf hash>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckpointId(String);

impl CheckpointId {
    /// Returns the name of an entry's checkpoint.
    pub fn new(seq: u64, hash: Digest) -> Self {
        Self(format!("{seq}-{}", &hash.hex()[..12]))
    }

    /// Returns the number of its entry.
    pub fn seq(&self) -> u64 {
        let number = self.0.split('-').next().and_then(|number| number.parse().ok());
        number.expect("the name begins with a number")
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CheckpointId {
    type Err = BadCheckpointId;

    fn from_str(text: &str) -> Result<Self, BadCheckpointId> {
        let good = text.split_once('-').is_some_and(|(seq, hash)| {
            let number = seq.parse::<u64>().is_ok_and(|number| number.to_string() == seq);
            number && hash.len() == 12 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        });
        if good { Ok(Self(text.to_owned())) } else { Err(BadCheckpointId(text.to_owned())) }
    }
}

impl TryFrom<String> for CheckpointId {
    type Error = BadCheckpointId;

    fn try_from(text: String) -> Result<Self, BadCheckpointId> {
        text.parse()
    }
}

impl From<CheckpointId> for String {
    fn from(id: CheckpointId) -> Self {
        id.0
    }
}

/// A text that is not the name of a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not the name of a checkpoint, like 3-0c3b84d1aa07")]
pub struct BadCheckpointId(String);

/// A saved working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// The tree of tracked and untracked files, byte for byte as on disk.
    pub tree: Oid,
    /// Ignored files, by path; only named.
    pub ignored: Vec<Ignored>,
}

/// An ignored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignored {
    /// The path; with a trailing slash, a folder too large to list.
    pub path: String,
    /// The digest of its bytes or link target; absent for folders and unreadable files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// The run tied to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunTie {
    /// The run.
    pub id: RunId,
    /// The commit of its latest entry at that time; a parent of the entry's commit.
    pub commit: Oid,
}

/// The checkpoint that a thread was created from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its thread.
    pub thread: ThreadId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The commit of its entry; a parent of the first entry's commit.
    pub commit: Oid,
}

/// An adopted offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdoptedFrom {
    /// Its thread.
    pub thread: ThreadId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The commit of its entry; a parent of the first entry's commit.
    pub commit: Oid,
    /// The digest of the state.
    pub sha256: Digest,
    /// The digest of the descriptor in canonical form.
    pub descriptor: Digest,
    /// The descriptor's nonce.
    pub nonce: String,
    /// The fingerprint of the signing key of descriptor and checkpoint.
    pub signer: String,
    /// Whether the adopter accepted an unknown key.
    pub accepted_unknown: bool,
    /// The accepted classification of the packet; absent if clean or without a packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_packet: Option<Unclean>,
    /// The recipient in the descriptor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<String>,
}

/// The content of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The state.
    pub state: Product,
    /// The summary.
    pub summary: Option<String>,
    /// The attached packet.
    pub packet: Option<Product>,
    /// The working tree, if saved.
    pub worktree: Option<Worktree>,
    /// The checked-out commit; not kept reachable.
    pub base: Option<Oid>,
}

/// Declares the event structs with a checkpoint's content beside their own fields.
macro_rules! checkpoints {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$attr])* pub $field: $type,)*
            /// The state.
            pub state: Product,
            /// The summary.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub summary: Option<String>,
            /// The attached packet.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub packet: Option<Product>,
            /// The working tree, if saved.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub worktree: Option<Worktree>,
            /// The checked-out commit; not kept reachable.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub base: Option<Oid>,
        }

        impl $name {
            /// Creates the fields of the entry.
            pub fn new($($field: $type,)* content: Content) -> Self {
                let Content { state, summary, packet, worktree, base } = content;
                Self { $($field,)* state, summary, packet, worktree, base }
            }

            /// Returns the content.
            pub fn content(&self) -> Content {
                Content {
                    state: self.state,
                    summary: self.summary.clone(),
                    packet: self.packet,
                    worktree: self.worktree.clone(),
                    base: self.base,
                }
            }
        }
    )*};
}

checkpoints! {
    /// The fields of `thread.checkpointed`.
    ThreadCheckpointed {
        /// The tied run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunTie>,
    }
    /// The fields of `thread.adopted`.
    ThreadAdopted {
        /// The adopted offer.
        adopted_from: AdoptedFrom,
    }
    /// The fields of `thread.forked`.
    ThreadForked {
        /// The source.
        from: Origin,
    }
}

/// The fields of `thread.rolled-back`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadRolledBack {
    /// The checkpoint whose content this one repeats.
    pub to: CheckpointId,
}

/// The fields of `thread.resumed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ThreadResumed {
    /// The resumed checkpoint: the latest.
    pub checkpoint: CheckpointId,
    /// The resume token of its packet, used by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_token: Option<String>,
    /// The accepted classification of the packet; absent if clean or without a packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_packet: Option<Unclean>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Its name.
    pub id: CheckpointId,
    /// The commit of its entry.
    pub commit: Oid,
    /// The leaf hash of its entry.
    pub hash: Digest,
    /// Its entry.
    pub entry: Entry,
    /// The content, shared after a rollback.
    pub content: Arc<Content>,
    /// The times at which it was resumed.
    pub resumed: Vec<Moment>,
}

/// The state of a thread, from its entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trail {
    /// The checkpoints, oldest first; every entry except a resumption makes one.
    pub checkpoints: Vec<Checkpoint>,
    /// The used resume tokens.
    pub consumed: BTreeSet<String>,
}

impl Trail {
    /// Applies the next entry; an illegal one changes nothing.
    pub fn push(&mut self, entry: &Entry, hash: Digest, commit: Oid) -> Result<(), Illegal> {
        let first = self.checkpoints.is_empty();
        let content = match &entry.event {
            Event::ThreadCheckpointed(e) => Arc::new(e.content()),
            Event::ThreadAdopted(e) if first && e.adopted_from.sha256 == e.state.sha256 => Arc::new(e.content()),
            Event::ThreadAdopted(_) if first => return Err(Illegal::OtherState),
            Event::ThreadForked(e) if first => Arc::new(e.content()),
            Event::ThreadRolledBack(e) => match self.find(&e.to) {
                Some(target) => Arc::clone(&target.content),
                None => return Err(Illegal::UnknownCheckpoint(e.to.clone())),
            },
            Event::ThreadResumed(e) => {
                return match self.checkpoints.last_mut() {
                    Some(latest) if latest.id == e.checkpoint => {
                        latest.resumed.push(entry.at);
                        self.consumed.extend(e.resume_token.clone());
                        Ok(())
                    }
                    _ => Err(Illegal::NotTheLatest(e.checkpoint.clone())),
                };
            }
            other => return Err(Illegal::Misplaced(other.kind())),
        };
        let id = CheckpointId::new(entry.seq, hash);
        self.checkpoints.push(Checkpoint { id, commit, hash, entry: entry.clone(), content, resumed: Vec::new() });
        Ok(())
    }

    /// Returns the checkpoint with a name.
    pub fn find(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.checkpoints.iter().find(|checkpoint| checkpoint.id == *id)
    }

    /// Returns the latest checkpoint.
    pub fn latest(&self) -> Option<&Checkpoint> {
        self.checkpoints.last()
    }
}

impl Content {
    /// Returns the bytes of a tree with exactly this content.
    pub fn tree(&self) -> Vec<u8> {
        // In git's order.
        let mut bytes = Vec::new();
        let mut node = |mode: &str, name: &str, oid: Oid| {
            bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            bytes.extend_from_slice(oid.0.as_slice());
        };
        if let Some(packet) = &self.packet {
            node("100644", PACKET, packet.oid);
        }
        node("100644", STATE, self.state.oid);
        if let Some(worktree) = &self.worktree {
            node("40000", WORKTREE, worktree.tree);
        }
        bytes
    }
}

/// The reason why an entry is illegal in a thread.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Illegal {
    #[error("{0} has no place there")]
    Misplaced(&'static str),
    #[error("the thread has no checkpoint {0} before it")]
    UnknownCheckpoint(CheckpointId),
    #[error("{0} is not the latest checkpoint")]
    NotTheLatest(CheckpointId),
    #[error("the state is not the one that was offered")]
    OtherState,
}
