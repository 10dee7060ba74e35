//! The end of an attempt that another may follow.

use serde::{Deserialize, Serialize};

use super::claims::{Claims, says_nothing};
use super::driver::{Because, DriverId};
use super::name::ItemId;
use super::outcome::{Exit, Transcript};
use super::pipeline::BlockEnded;
use super::time::Moment;
use super::usage::Usage;

/// The fields of `item.retried` and `item.requeued`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// The exit of the process, if known.
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
}

/// The reason for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
