//! The ends of attempts that others may follow, of items that no attempt ends, and of runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::claims::{Claims, says_nothing};
use super::digest::Digest;
use super::driver::{Because, DriverId};
use super::name::ItemId;
use super::outcome::{Exit, Transcript};
use super::pipeline::BlockEnded;
use super::time::Moment;
use super::usage::Usage;

/// The fields of `item.retried` and `item.requeued`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemEnded {
    /// The item.
    pub item: ItemId,
    /// The attempt; 0 if there was none.
    pub attempt: u32,
    /// The reason for another attempt.
    pub reason: Again,
    /// Details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The exit of the process; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Milliseconds from dispatch to the end, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The captured stdout and stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Transcript>,
    /// The results of the pipeline's blocks; empty without a pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockEnded>,
    /// The tokens and the price, by the worker's own word.
    #[serde(default, skip_serializing_if = "says_nothing")]
    pub usage: Option<Usage>,
    /// The worker's claims about the attempt.
    #[serde(default, skip_serializing_if = "says_nothing")]
    #[cfg_attr(feature = "schemas", schemars(with = "Option<super::formats::Stated>"))]
    pub claims: Option<Box<Claims>>,
    /// The earliest time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    /// The driver that held the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverId>,
    /// The driver that took the attempt from its driver; only with the reason `lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<DriverId>,
    /// Why the attempt was taken; exactly with the reason `lost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
}

impl ItemEnded {
    /// Returns the end of an attempt without details.
    pub fn new(item: ItemId, attempt: u32, reason: Again) -> Self {
        Self {
            item,
            attempt,
            reason,
            detail: None,
            exit: None,
            duration_ms: None,
            transcript: None,
            blocks: Vec::new(),
            usage: None,
            claims: None,
            not_before: None,
            driver: None,
            taker: None,
            because: None,
        }
    }

    /// Returns what people read of it.
    pub(super) fn details(&self) -> Option<String> {
        self.detail.clone()
    }
}

/// The reason for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Again {
    /// The attempt failed, and attempts are left.
    Failure,
    /// The driver died while the attempt ran.
    Crash,
    /// An operator requested it.
    Operator,
    /// The driver was lost, and its attempt taken from it.
    Lost,
}

/// The fields of `item.skipped` and `item.cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemDropped {
    /// The item.
    pub item: ItemId,
    /// The latest attempt, which this ends if it was running; 0 if there was none.
    pub attempt: u32,
    /// The reason.
    pub reason: String,
}

impl ItemDropped {
    /// Returns the end of an item without an attempt.
    pub fn new(item: ItemId, attempt: u32, reason: impl Into<String>) -> Self {
        Self { item, attempt, reason: reason.into() }
    }

    /// Returns what people read of it.
    pub(super) fn details(&self) -> String {
        self.reason.clone()
    }
}

/// The fields of `run.closed` and `run.cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunEnded {
    /// The reason.
    pub reason: String,
}

impl RunEnded {
    /// Returns the end of a run.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// Returns what people read of it.
    pub(super) fn details(&self) -> String {
        self.reason.clone()
    }
}

/// The fields of `run.sealed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunSealed {
    /// The RFC 6962 tree hash of the leaf hashes of all previous entries.
    pub root: Digest,
    /// The rules that stopped before the run was done, with reasons; absent if none did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped: BTreeMap<ItemId, String>,
}

impl RunSealed {
    /// Returns the seal of a run in which no rule stopped.
    pub fn new(root: Digest) -> Self {
        Self { root, stopped: BTreeMap::new() }
    }
}
