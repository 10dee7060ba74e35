//! The state of one item, and how `state.json` writes it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::entry::{InputRef, Product};
use super::format;
use super::name::{FilePath, ItemId, RunId};
use super::plan::ProductKey;
use super::time::Moment;

/// Where an item stands, as far as entries say.
///
/// `pending` and `ready` are not here: both are [`Phase::Waiting`], told apart by the phases of the dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not dispatched yet, or to be dispatched again.
    Waiting,
    /// Its latest attempt is running.
    Running,
    /// Done; final.
    Done,
    /// Failed for good, unless an operator asks for it again.
    Failed,
    /// Left out because something it depends on did not get done.
    Skipped,
    /// Cancelled.
    Cancelled,
}

impl Phase {
    /// Returns whether nothing more happens by itself.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }

    /// Returns the status word that `state.json` stores; none while the item waits.
    pub fn stored(self) -> Option<&'static str> {
        match self {
            Self::Waiting => None,
            Self::Running => Some("running"),
            Self::Done => Some("done"),
            Self::Failed => Some("failed"),
            Self::Skipped => Some("skipped"),
            Self::Cancelled => Some("cancelled"),
        }
    }
}

/// The state of one item.
#[derive(Clone, Debug)]
pub struct ItemState {
    /// Where it stands.
    pub phase: Phase,
    /// How many attempts were dispatched.
    pub attempts: u32,
    /// How many of them `maxAttempts` does not count: all until an operator last asked for the item again, and those that a crash
    /// took since.
    pub granted_at: u32,
    /// How many attempts a crash took since an operator last asked for the item.
    pub crashes: u32,
    /// The moment before which the next attempt is not dispatched.
    pub not_before: Option<Moment>,
    /// Why it stands where it stands.
    pub reason: Option<String>,
    /// Whether it is done although its check did not pass. No part of `state.json`: the entry that ends the item says so.
    pub red: bool,
    /// What the worker says that it did, as the entry that ends the item has it; no part of `state.json`.
    pub summary: Option<String>,
    /// Who decided, where that is for people; no part of `state.json`.
    pub decided_by: Option<String>,
    /// The item of another run that its products are taken from; no part of `state.json`.
    pub reused: Option<(RunId, ItemId)>,
    /// Whether it ran a pipeline that captures nothing; no part of `state.json`.
    pub only_checks: bool,
    /// What it hands over, once done.
    pub products: BTreeMap<ProductKey, Product>,
    /// What its latest attempt consumed.
    pub inputs: BTreeMap<FilePath, InputRef>,
    /// Whether an entry was about it yet, so that it has a `state.json`.
    pub touched: bool,
}

/// `state.json` as it stands in the run's tree.
#[derive(Serialize)]
struct Stored<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    products: &'a BTreeMap<ProductKey, Product>,
}

impl ItemState {
    /// Returns the state of an item that no entry is about.
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Waiting,
            attempts: 0,
            granted_at: 0,
            crashes: 0,
            not_before: None,
            reason: None,
            red: false,
            summary: None,
            decided_by: None,
            reused: None,
            only_checks: false,
            products: BTreeMap::new(),
            inputs: BTreeMap::new(),
            touched: false,
        }
    }

    /// Returns the bytes of the item's `state.json`.
    pub fn canonical(&self) -> Vec<u8> {
        format::canonical(&Stored {
            status: self.phase.stored(),
            attempts: self.attempts,
            reason: self.reason.as_deref(),
            products: &self.products,
        })
    }
}
