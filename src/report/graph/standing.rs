//! The status of boxes.

use std::collections::BTreeMap;

use crate::model::item_index::ItemIndex;
use crate::model::state::{Phase, RunState};
use crate::model::words::words;

words! {
    word
    /// The status of an item in a picture, from the best to the one that needs most attention.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Standing {
        /// Done and green.
        Done = "done",
        /// Skipped, cancelled or superseded.
        Dropped = "dropped",
        /// Not dispatched yet.
        Waiting = "waiting",
        /// Running.
        Running = "running",
        /// Done although its check failed.
        Red = "red",
        /// Failed.
        Failed = "failed",
    }
}

impl Standing {
    /// Returns the status of an item.
    #[must_use]
    pub fn read(state: &RunState, at: ItemIndex) -> Self {
        ItemStatus::read(state, at).standing()
    }

    /// Returns its mark, as `git handoff status` has it.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Done => "✓",
            Self::Dropped => "─",
            Self::Waiting => "·",
            Self::Running => "▶",
            Self::Red => "!",
            Self::Failed => "✗",
        }
    }

    /// Returns the colours of its box in diagrams: of the area and of the border.
    #[must_use]
    pub fn colors(self) -> (&'static str, &'static str) {
        match self {
            Self::Done => ("#dff3e3", "#1a7f37"),
            Self::Dropped | Self::Waiting => ("#eeeeee", "#6b6b6b"),
            Self::Running => ("#dbeafe", "#1d4ed8"),
            Self::Red => ("#fff1c2", "#9a6700"),
            Self::Failed => ("#ffe1de", "#b3261e"),
        }
    }
}

words! {
    word
    /// The status of an item as people read it, the worst first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[expect(missing_docs, reason = "the words say it")]
    pub enum ItemStatus {
        Failed = "failed",
        Red = "done, red",
        Running = "running",
        Pending = "pending",
        Cancelled = "cancelled",
        Skipped = "skipped",
        Claimed = "done, claimed",
        Done = "done",
        Superseded = "superseded",
    }
}

impl ItemStatus {
    /// Returns the status of an item; one that is ready counts as pending.
    #[must_use]
    pub fn read(state: &RunState, at: ItemIndex) -> Self {
        match state.items[at].phase {
            _ if state.is_superseded(at) => Self::Superseded,
            Phase::Done if state.items[at].red => Self::Red,
            Phase::Done if state.graph.item(at).is_claimed() => Self::Claimed,
            Phase::Done => Self::Done,
            Phase::Failed => Self::Failed,
            Phase::Running => Self::Running,
            Phase::Waiting => Self::Pending,
            Phase::Skipped => Self::Skipped,
            Phase::Cancelled => Self::Cancelled,
        }
    }

    /// Returns the standing with its mark and colours.
    #[must_use]
    pub fn standing(self) -> Standing {
        match self {
            Self::Failed => Standing::Failed,
            Self::Red => Standing::Red,
            Self::Running => Standing::Running,
            Self::Pending => Standing::Waiting,
            Self::Cancelled | Self::Skipped | Self::Superseded => Standing::Dropped,
            Self::Claimed | Self::Done => Standing::Done,
        }
    }
}

/// Returns the item of a box that needs most attention, the first one of several.
#[must_use]
pub fn worst(state: &RunState, members: &[ItemIndex]) -> Option<ItemIndex> {
    let worst = members.iter().map(|at| Standing::read(state, *at)).max()?;
    members.iter().copied().find(|at| Standing::read(state, *at) == worst)
}

/// Counts items by status, in the words of `runs --json`: red and superseded items apart.
#[must_use]
pub fn count_statuses(state: &RunState, members: &[ItemIndex]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for at in members {
        let word = match (state.is_superseded(*at), state.items[*at].red) {
            (true, _) => "superseded",
            (false, true) => "red",
            (false, false) => state.status(*at),
        };
        *counts.entry(word).or_default() += 1;
    }
    counts
}
