//! The state of an item, as the entries give it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::driver::DriverId;
use super::entry::{InputRef, ItemFired, Product};
use super::item_index::ItemIndex;
use super::name::{FilePath, ItemId, RunId};
use super::plan::ProductKey;
use super::protected::ProtectedChange;
use super::time::Moment;

/// The status of an item, as far as entries record it.
///
/// `pending` and `ready` are both [`Phase::Waiting`]; the dependencies tell them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not dispatched, or to be dispatched again.
    #[default]
    Waiting,
    /// Its latest attempt is running.
    Running,
    /// Done; final.
    Done,
    /// Failed, unless an operator requests a retry.
    Failed,
    /// Skipped because a dependency did not get done.
    Skipped,
    /// Cancelled.
    Cancelled,
}

impl Phase {
    /// Returns true if the item has ended.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }

    /// Returns the status word, or `None` while the item waits.
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

/// The driver that holds a running attempt, as the dispatch names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Holder {
    /// The driver.
    pub driver: DriverId,
    /// The name of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The job of the engine that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl Holder {
    /// Returns the driver that dispatched an attempt, if one did.
    pub fn from_fired(e: &ItemFired) -> Option<Self> {
        let driver = e.driver.clone()?;
        Some(Self { driver, host: e.host().map(str::to_owned), job: e.job().map(str::to_owned) })
    }
}

/// In words: `driver d1d1d1d1 on node7, job 4711`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "driver {}", self.driver.short())?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        self.job.as_ref().map_or(Ok(()), |job| write!(f, ", job {job}"))
    }
}

/// The state of one item.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own from the entries")]
pub struct ItemState {
    /// The status.
    pub phase: Phase,
    /// The number of dispatched attempts.
    pub attempts: u32,
    /// The number of attempts that `maxAttempts` ignores: all before an operator's latest retry,
    /// and those lost to crashes since.
    pub granted_at: u32,
    /// The number of attempts lost to crashes since an operator's latest retry.
    pub crashes: u32,
    /// The earliest time of the next attempt.
    pub not_before: Option<Moment>,
    /// The driver that holds the running attempt.
    pub holder: Option<Holder>,
    /// The manifest of the latest dispatch.
    pub manifest: Option<Product>,
    /// The reason of the status.
    pub reason: Option<String>,
    /// Whether it is done although its check failed.
    pub red: bool,
    /// The changes to protected files, from the entry.
    pub protected: Vec<ProtectedChange>,
    /// Whether a check that passed judged these changes.
    pub judged: bool,
    /// Whether a check decided while no file was protected.
    pub unprotected: bool,
    /// Whether it is red only because of these changes, so that an approval clears it.
    pub clearable: bool,
    /// The key that approved these changes.
    pub approved_by: Option<String>,
    /// The key or actor of the driver whose settings allowed the changes to protected files.
    pub allowed_by: Option<String>,
    /// The patches that belong to the reference state of the latest attempt, by item.
    pub reference: BTreeMap<ItemIndex, Product>,
    /// The worker's summary, from the entry.
    pub summary: Option<String>,
    /// The key that decided, for an approval.
    pub decided_by: Option<String>,
    /// The item of another run whose products were reused.
    pub reused: Option<(RunId, ItemId)>,
    /// Whether its pipeline captures nothing.
    pub only_checks: bool,
    /// The products, once done.
    pub products: BTreeMap<ProductKey, Product>,
    /// The inputs of the latest attempt.
    pub inputs: BTreeMap<FilePath, InputRef>,
}
