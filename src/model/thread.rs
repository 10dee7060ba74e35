//! Threads: the fields of their entries, and the checkpoints that follow from them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, Oid};
use super::entry::{Entry, Event, Product};
use super::name::{RunId, ThreadId};
use super::packet::Unclean;
use super::time::Moment;
use super::words::as_text;

/// The state's path in a thread's tree.
pub const STATE: &str = "state";
/// The packet's path in a thread's tree.
pub const PACKET: &str = "packet.json";
/// The working tree's folder in a thread's tree.
pub const WORKTREE: &str = "worktree";

/// The maximum length of a summary, in bytes.
pub const MAX_SUMMARY: usize = 1000;

/// The name of a checkpoint: `<seq>-<first 12 hex digits of its entry's leaf hash>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(String);

as_text!(CheckpointId);

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

/// A text that is not the name of a checkpoint.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not the name of a checkpoint, like 3-0c3b84d1aa07")]
pub struct BadCheckpointId(String);

/// A saved working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// The tree of tracked and untracked files, byte for byte as on disk.
    pub tree: Oid,
    /// Ignored files, by path; only named.
    pub ignored: Vec<Ignored>,
}

/// An ignored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ignored {
    /// The path; with a trailing slash, a folder too large to list.
    pub path: String,
}

/// The run tied to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunTie {
    /// The run.
    pub id: RunId,
    /// The commit of its latest entry at that time; a parent of the entry's commit.
    pub commit: Oid,
}

/// The checkpoint that a thread was created from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SourceCheckpoint {
    /// Its thread.
    pub thread: ThreadId,
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The commit of its entry; a parent of the first entry's commit.
    pub commit: Oid,
}

impl fmt::Display for SourceCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.thread, self.checkpoint)
    }
}

/// An adopted offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AdoptedFrom {
    /// The checkpoint.
    #[serde(flatten)]
    pub source: SourceCheckpoint,
    /// The digest of the state.
    pub sha256: Digest,
    /// The digest of the descriptor in canonical form.
    pub descriptor: Digest,
    /// The descriptor's nonce.
    pub nonce: String,
    /// The fingerprint of the signing key of descriptor and checkpoint.
    #[cfg_attr(feature = "schemas", schemars(with = "crate::model::formats::Fingerprint"))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Content {
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

/// The origin of a content: a run, or another checkpoint with the same content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The checkpoint is tied to this run.
    Run(RunTie),
    /// The thread begins with a checkpoint that another key offered.
    Adopted(AdoptedFrom),
    /// The thread begins with a checkpoint of another thread.
    From(SourceCheckpoint),
    /// The thread was rolled back to this checkpoint.
    To(CheckpointId),
}

impl Origin {
    /// Returns the checkpoint of another thread.
    pub fn source(&self) -> Option<&SourceCheckpoint> {
        match self {
            Self::Adopted(offer) => Some(&offer.source),
            Self::From(source) => Some(source),
            Self::Run(_) | Self::To(_) => None,
        }
    }

    /// Returns the further parent of the entry's commit.
    pub(super) fn parent(&self) -> Option<Oid> {
        if let Self::Run(tie) = self { Some(tie.commit) } else { self.source().map(|source| source.commit) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(tie) => write!(f, "made in run {}", tie.id),
            Self::Adopted(offer) => write!(f, "adopted from {}", offer.source),
            Self::From(source) => write!(f, "forked from {source}"),
            Self::To(checkpoint) => write!(f, "rolled back to {checkpoint}"),
        }
    }
}

/// The fields of `thread.checkpointed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ThreadCheckpointed {
    /// The content.
    #[serde(flatten)]
    pub content: Content,
    /// Its origin. One in another form reads as none, and the entry as one that is not canonical.
    #[serde(flatten)]
    pub origin: Option<Origin>,
}

impl ThreadCheckpointed {
    /// Returns true if the origin fits the number of the entry, and an offer the state.
    pub(super) fn has_legal_origin(&self, seq: u64) -> bool {
        match &self.origin {
            None | Some(Origin::Run(_)) => true,
            Some(Origin::Adopted(offer)) => seq == 0 && offer.sha256 == self.content.state.sha256,
            Some(Origin::From(_)) => seq == 0,
            Some(Origin::To(_)) => seq > 0,
        }
    }
}

impl Event {
    /// Returns the origin of a checkpoint.
    pub fn origin(&self) -> Option<&Origin> {
        if let Self::ThreadCheckpointed(e) = self { e.origin.as_ref() } else { None }
    }

    /// Returns the run that a checkpoint is tied to.
    pub fn tied_run(&self) -> Option<&RunTie> {
        if let Some(Origin::Run(tie)) = self.origin() { Some(tie) } else { None }
    }
}

/// The fields of `thread.resumed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

impl ThreadResumed {
    /// Returns the resumption of a checkpoint without a packet.
    pub fn new(checkpoint: CheckpointId) -> Self {
        Self { checkpoint, resume_token: None, accepted_packet: None }
    }
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
    /// The times at which it was resumed.
    pub resumed: Vec<Moment>,
}

impl Checkpoint {
    /// Returns the checkpoint that an entry makes.
    pub(crate) fn new(entry: Entry, hash: Digest, commit: Oid) -> Self {
        Self { id: CheckpointId::new(entry.seq, hash), commit, hash, entry, resumed: Vec::new() }
    }

    /// Returns its content.
    pub fn content(&self) -> &Content {
        let Event::ThreadCheckpointed(e) = &self.entry.event else { unreachable!("no other entry makes one") };
        &e.content
    }
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
        match &entry.event {
            Event::ThreadCheckpointed(e) => {
                if let Some(Origin::To(to)) = &e.origin
                    && self.find(to).is_none_or(|target| *target.content() != e.content)
                {
                    return Err(Illegal::OtherContent(to.clone()));
                }
                self.checkpoints.push(Checkpoint::new(entry.clone(), hash, commit));
            }
            Event::ThreadResumed(e) => {
                let latest = self.checkpoints.last_mut().filter(|latest| latest.id == e.checkpoint);
                latest.ok_or_else(|| Illegal::NotTheLatest(e.checkpoint.clone()))?.resumed.push(entry.at);
                self.consumed.extend(e.resume_token.clone());
            }
            other => return Err(Illegal::Misplaced(other.kind())),
        }
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

errors! {
    /// The reason why an entry is illegal in a thread.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] pub enum Illegal;
    Misplaced(&'static str): "{0} has no place there";
    OtherContent(CheckpointId): "its content is not that of an earlier checkpoint {0}";
    NotTheLatest(CheckpointId): "{0} is not the latest checkpoint";
}
