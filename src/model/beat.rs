//! Signs of life of the drivers of a shared run.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::driver::{self, DriverId};
use super::format;
use super::name::{ItemId, RunId};
use super::time::Moment;

/// The version of the message.
const VERSION: u32 = 1;

/// The message of a beat: a commit with the empty tree whose parent is the beat before it.
///
/// A fence is the same by another driver, which took over the attempts: it names the taker instead
/// of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beat {
    /// The version of this message.
    pub v: u32,
    /// The run.
    pub run: RunId,
    /// The leaf hash of entry 0 of the run.
    pub first: Digest,
    /// The driver.
    pub driver: DriverId,
    /// The number of the beat, from 1; absent from a fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beat: Option<u64>,
    /// The driver that took over; only in a fence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<DriverId>,
    /// When it was made, by the driver's clock.
    pub at: Moment,
    /// The name of the driver's host.
    #[serde(default, deserialize_with = "driver::text", skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The job of the engine that started the driver.
    #[serde(default, deserialize_with = "driver::text", skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Whether the driver drives the run without sharing it: "driven here, not shared".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The number of further items that the driver could run.
    pub free: u64,
    /// The items that the driver runs.
    pub holds: Vec<ItemId>,
    /// The items that the driver claimed and did not start yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ItemId>,
    /// The time in milliseconds that a push of the driver takes, or a read if that takes longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<u64>,
    /// The entries that the driver has to push, if other drivers were faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// The things that the driver's machine lacks, with items that need them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declines: Vec<Declined>,
}

/// Entries that a driver could not push yet because other drivers were faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waits {
    /// The number of results; 0 if it waits to claim items for free slots.
    pub results: u64,
    /// Since when, by the driver's clock.
    pub since: Moment,
}

/// Something that a machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Declined {
    /// The thing, in words.
    pub why: String,
    /// Items that need it, at most [`MOST_DECLINED`] of them.
    pub items: Vec<ItemId>,
}

/// The most reasons in a beat, and the most items of each.
pub const MOST_DECLINED: usize = 16;

impl Beat {
    /// Returns a beat without a number of a driver of a run.
    pub fn new(run: RunId, first: Digest, driver: DriverId, at: Moment) -> Self {
        Self {
            v: VERSION,
            run,
            first,
            driver,
            beat: None,
            taker: None,
            at,
            host: None,
            job: None,
            alone: false,
            free: 0,
            holds: Vec::new(),
            claims: Vec::new(),
            push: None,
            waits: None,
            declines: Vec::new(),
        }
    }

    /// Returns the message of the commit.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(self)
    }

    /// Parses the message of a commit, or returns `None` if it is not that of a beat.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let beat: Self = serde_json::from_slice(message).ok()?;
        (beat.v == VERSION && beat.beat.is_some() != beat.taker.is_some()).then_some(beat)
    }
}
