//! The recorded results of blocks, and their validation against the pipeline. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Block, BlockKind, CaptureKind, Pipeline};
use crate::model::entry::{Exit, ItemReconciled, Outcome, Verified, VerifiedBy};
use crate::model::plan::ProductKey;
use crate::model::words::words;

/// The result of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockEnded {
    /// Its position, from 0.
    pub ordinal: u32,
    /// Its kind.
    pub kind: BlockKind,
    /// The result.
    pub status: BlockStatus,
    /// The exit of its command; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The result of the check, for a checking block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verified>,
}

words! {
    word
    /// The result of a block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum BlockStatus {
        /// Succeeded.
        Done = "done",
        /// Failed.
        Failed = "failed",
        /// Its time limit, or the attempt's, was reached.
        TimedOut = "timed out",
        /// The driver cancelled it.
        Interrupted = "interrupted",
    }
}

impl Pipeline {
    /// Validates the results of an attempt: they belong to the first blocks, in order, and all but
    /// the last let the pipeline continue.
    pub fn expect_begun(&self, blocks: &[BlockEnded]) -> Result<(), Misfit> {
        if blocks.len() > self.blocks.len() {
            return Err(Misfit::TooMany { claimed: blocks.len(), there: self.blocks.len() });
        }
        for (at, (ended, block)) in blocks.iter().zip(&self.blocks).enumerate() {
            if ended.ordinal as usize != at || ended.kind != block.kind() {
                return Err(Misfit::Other { at, kind: block.kind() });
            }
            if !ended.is_possible(block) {
                return Err(Misfit::Impossible { at });
            }
            let is_last = at + 1 == blocks.len();
            if !is_last && !ended.lets_others_follow(block) {
                return Err(Misfit::WentOn { at });
            }
        }
        Ok(())
    }

    /// Validates the results of an item's last attempt.
    ///
    /// If done, every block ran, every gate passed, the check is that of the first checking block,
    /// and a block captured each product.
    pub fn expect_ended(&self, e: &ItemReconciled) -> Result<(), Misfit> {
        self.expect_begun(&e.blocks)?;
        if e.status != Outcome::Done {
            return Ok(());
        }
        if e.blocks.len() < self.blocks.len() {
            return Err(Misfit::TooFew { claimed: e.blocks.len(), there: self.blocks.len() });
        }
        for (at, (ended, block)) in e.blocks.iter().zip(&self.blocks).enumerate() {
            if !ended.lets_others_follow(block) {
                return Err(Misfit::NotPassed { at });
            }
        }
        let found = e.blocks.iter().find_map(|ended| ended.verify);
        let is_said = match (found, e.verify) {
            (None, claimed) => claimed.is_none_or(|claimed| claimed.by == VerifiedBy::Itself),
            (Some(found), Some(claimed)) => match claimed.by {
                VerifiedBy::Command => claimed.passed == found.passed,
                // A worker's own negative result overrides any check.
                VerifiedBy::Itself => !claimed.passed,
            },
            (Some(_), None) => false,
        };
        if !is_said {
            return Err(Misfit::OtherVerify);
        }
        match e.products.keys().find(|key| !self.captures(CaptureKind::from_key(key))) {
            Some(key) => Err(Misfit::NotCaptured(key.clone())),
            None => Ok(()),
        }
    }
}

/// Formats a result: `agent done`, `script failed (exit 1)`.
impl fmt::Display for BlockEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.status.word())?;
        match self.exit {
            Some(Exit { code: Some(code), .. }) if code != 0 => write!(f, " (exit {code})"),
            Some(Exit { signal: Some(signal), .. }) => write!(f, " (signal {signal})"),
            _ => Ok(()),
        }
    }
}

impl BlockEnded {
    /// Returns true if a block of this kind can have this result.
    fn is_possible(&self, block: &Block) -> bool {
        let is_one = self.exit.is_none_or(|exit| exit.code.is_some() != exit.signal.is_some());
        let done = self.status == BlockStatus::Done;
        let has_passed = self.exit.is_some_and(|exit| exit.code == Some(0));
        let is_found = match (block.verifies(), self.verify) {
            (true, Some(found)) => found.passed == done && found.by == VerifiedBy::Command,
            (true, None) => !done,
            (false, found) => found.is_none(),
        };
        let is_ended = match block {
            Block::Agent | Block::Script(_) => !done || has_passed,
            Block::Capture(_) => self.exit.is_none(),
        };
        is_one && is_found && is_ended
    }

    /// Returns true if the pipeline continues after this result.
    fn lets_others_follow(&self, block: &Block) -> bool {
        if block.verifies() { self.verify.is_some() } else { self.status == BlockStatus::Done }
    }
}

errors! {
    /// The reason why recorded results are impossible.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)] pub enum Misfit;
    NoPipeline: "it tells of blocks, and the item has no pipeline";
    TooMany { claimed: usize, there: usize }: "it tells of {claimed} blocks, and the pipeline has {there}";
    TooFew { claimed: usize, there: usize }: "it is done after {claimed} blocks, and the pipeline has {there}";
    Other { at: usize, kind: BlockKind }: "blocks[{at}] of the pipeline is another: its kind is {kind}";
    Impossible { at: usize }: "blocks[{at}] cannot have ended like this";
    WentOn { at: usize }: "blocks[{at}] did not pass, and others followed";
    NotPassed { at: usize }: "it is done although blocks[{at}] did not pass";
    OtherVerify: "its check is not what the first block that checks has found";
    NotCaptured(ProductKey): "no block of the pipeline takes its product {0}";
}
