//! A pipeline: what an item runs, block by block, in the place of the ordinary steps. Pure.
//!
//! Its file is JSON that people write; whoever reads it finds everything that is wrong with it at once.

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

pub use evidence::{BlockEnded, BlockStatus, Misfit};
pub use read::{MAX_BLOCKS, MAX_BYTES};
pub use reference::{Pipelines, Reference, Unusable};

/// Blocks that are run one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// What plans call it: `<pack>.<name>`.
    pub id: String,
    /// What it does, in order; at least one block.
    pub blocks: Vec<Block>,
    /// The type of what it hands over.
    pub output_edge_type: Option<String>,
    /// The type that it takes under an input key.
    pub input_edge_types: BTreeMap<String, String>,
}

/// One step of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// The command of the item's executor.
    Agent,
    /// A command of the pipeline's own.
    Script(Script),
    /// The products are taken as they stand.
    Capture(What),
}

/// A command of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The command line, for `sh -c`.
    pub command: String,
    /// What its end means.
    pub lens: Lens,
    /// Seconds after which it is ended.
    pub timeout: u64,
}

/// What the end of a script means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lens {
    /// Where it does not pass, the attempt fails, and no block follows.
    Gate,
    /// It says whether the result is good, and no more.
    Verify,
}

/// What a capture takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The change to the worktree.
    Patch,
    /// The files below the folder of outputs.
    Outputs,
}

impl What {
    /// Returns what takes a product.
    pub fn that_takes(key: &ProductKey) -> Self {
        match key {
            ProductKey::Patch => Self::Patch,
            ProductKey::Output(_) | ProductKey::Document(_) => Self::Outputs,
        }
    }
}

/// The kind of a block, as its file and evidence name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    /// [`Block::Agent`]
    Agent,
    /// [`Block::Script`]
    Script,
    /// [`Block::Capture`]
    Capture,
}

impl Block {
    /// Returns its kind.
    pub fn kind(&self) -> BlockKind {
        match self {
            Self::Agent => BlockKind::Agent,
            Self::Script(_) => BlockKind::Script,
            Self::Capture(_) => BlockKind::Capture,
        }
    }

    /// Returns whether it says if the result is good.
    pub fn verifies(&self) -> bool {
        matches!(self, Self::Script(Script { lens: Lens::Verify, .. }))
    }
}

impl fmt::Display for BlockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Script => "script",
            Self::Capture => "capture",
        })
    }
}

/// A block in words: `agent`, `capture patch`, `gate: cargo test`.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent => f.write_str("agent"),
            Self::Capture(What::Patch) => f.write_str("capture patch"),
            Self::Capture(What::Outputs) => f.write_str("capture outputs"),
            Self::Script(Script { command, lens, .. }) => {
                let lens = if *lens == Lens::Gate { "gate" } else { "verify" };
                write!(f, "{lens}: {}", printable::line(command))
            }
        }
    }
}

impl Pipeline {
    /// Returns whether it takes something at all.
    pub fn captures(&self, what: What) -> bool {
        self.blocks.contains(&Block::Capture(what))
    }
}

/// A pipeline with the very bytes that it was read from, by whose digest it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pipeline: Pipeline,
    bytes: Vec<u8>,
    digest: Digest,
}

impl Spec {
    /// Reads the bytes of a pipeline, or says all that is wrong with them.
    pub fn parse(bytes: &[u8]) -> Result<Self, Problems> {
        let pipeline = read::pipeline(bytes)?;
        Ok(Self { pipeline, bytes: bytes.to_vec(), digest: Digest::of(bytes) })
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the digest of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the reference that names these bytes and no others.
    pub fn pinned(&self) -> String {
        format!("{}@{}", self.pipeline.id, self.digest)
    }

    /// Returns it as the JSON that it is.
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
