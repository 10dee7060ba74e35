//! A pipeline: a sequence of blocks that an item runs instead of the default steps. Pure.
//!
//! The parser of its file reports all problems at once.

mod evidence;
mod read;
mod reference;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digest::Digest;
use super::plan::ProductKey;
use super::printable;
use super::problems::Problems;
use super::words::words;

pub use evidence::{BlockEnded, BlockStatus, Misfit};
pub use read::{MAX_BLOCKS, MAX_BYTES};
pub use reference::{Pipelines, Reference, Unusable};

/// A sequence of blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// The id: `<pack>.<name>`.
    pub id: String,
    /// The blocks, at least one.
    pub blocks: Vec<Block>,
    /// The types of its products.
    pub output_edge_type: Option<String>,
    /// The types of its inputs, by key.
    pub input_edge_types: BTreeMap<String, String>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// The command of the item's executor.
    Agent,
    /// A command of the pipeline.
    Script(Script),
    /// Captures the products.
    Capture(CaptureKind),
}

/// A command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The command line, for `sh -c`.
    pub command: String,
    /// The effect of its exit status.
    pub lens: Lens,
    /// The time limit in seconds.
    pub timeout: u64,
}

/// The effect of a script's exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lens {
    /// A failure fails the attempt and ends the pipeline.
    Gate,
    /// It only checks the result.
    Verify,
}

/// The products to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureKind {
    /// The change to the worktree.
    Patch,
    /// The files in the outputs folder.
    Outputs,
}

impl CaptureKind {
    /// Returns the capture of a product.
    pub fn from_key(key: &ProductKey) -> Self {
        match key {
            ProductKey::Patch => Self::Patch,
            ProductKey::Output(_) | ProductKey::Document(_) => Self::Outputs,
        }
    }
}

words! {
    word
    /// The kind of a block, as in files and evidence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum BlockKind {
        /// [`Block::Agent`]
        Agent = "agent",
        /// [`Block::Script`]
        Script = "script",
        /// [`Block::Capture`]
        Capture = "capture",
    }
}

impl Block {
    /// Returns the kind.
    pub fn kind(&self) -> BlockKind {
        match self {
            Self::Agent => BlockKind::Agent,
            Self::Script(_) => BlockKind::Script,
            Self::Capture(_) => BlockKind::Capture,
        }
    }

    /// Returns true if the block checks the result.
    pub fn verifies(&self) -> bool {
        matches!(self, Self::Script(Script { lens: Lens::Verify, .. }))
    }
}

/// Formats a block: `agent`, `capture patch`, `gate: cargo test`.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent => f.write_str("agent"),
            Self::Capture(CaptureKind::Patch) => f.write_str("capture patch"),
            Self::Capture(CaptureKind::Outputs) => f.write_str("capture outputs"),
            Self::Script(Script { command, lens, .. }) => {
                let lens = if *lens == Lens::Gate { "gate" } else { "verify" };
                write!(f, "{lens}: {}", printable::line(command))
            }
        }
    }
}

impl Pipeline {
    /// Returns true if it captures anything.
    pub fn captures(&self, kind: CaptureKind) -> bool {
        self.blocks.contains(&Block::Capture(kind))
    }
}

/// A pipeline with its exact bytes, which its digest identifies.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pipeline: Pipeline,
    bytes: Vec<u8>,
    digest: Digest,
}

impl Spec {
    /// Parses a pipeline, or returns all problems.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problems> {
        let pipeline = read::pipeline(bytes)?;
        Ok(Self { pipeline, bytes: bytes.to_vec(), digest: Digest::compute(bytes) })
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the digest of the bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the reference that pins these bytes.
    pub fn pinned(&self) -> String {
        format!("{}@{}", self.pipeline.id, self.digest)
    }

    /// Returns the pipeline as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("what was read as JSON is JSON")
    }
}

impl Deref for Spec {
    type Target = Pipeline;

    fn deref(&self) -> &Pipeline {
        &self.pipeline
    }
}
