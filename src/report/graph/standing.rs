//! The status of boxes.

use std::collections::BTreeMap;

use crate::model::item_index::ItemIndex;
use crate::model::state::{Phase, RunState};
use crate::model::words::words;

/// The status of an item in a picture, from the best to the one that needs most attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Done and green.
    Done,
    /// Skipped, cancelled or superseded.
    Dropped,
    /// Not dispatched yet.
    Waiting,
    /// Running.
    Running,
    /// Done although its check failed.
    Red,
    /// Failed.
    Failed,
}

words!(
    Standing.word: Done = "done", Dropped = "dropped", Waiting = "waiting", Running = "running", Red = "red",
    Failed = "failed"
);

impl Standing {
    /// Returns the status of an item.
    #[must_use]
    pub fn of(state: &RunState, at: ItemIndex) -> Self {
        match state.items[at].phase {
            _ if state.is_superseded(at) => Self::Dropped,
            Phase::Done if state.items[at].red => Self::Red,
            Phase::Done => Self::Done,
            Phase::Failed => Self::Failed,
            Phase::Running => Self::Running,
            Phase::Waiting => Self::Waiting,
            Phase::Skipped | Phase::Cancelled => Self::Dropped,
        }
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

/// Returns the item of a box that needs most attention, the first one of several.
#[must_use]
pub fn worst(state: &RunState, members: &[ItemIndex]) -> Option<ItemIndex> {
    let worst = members.iter().map(|at| Standing::of(state, *at)).max()?;
    members.iter().copied().find(|at| Standing::of(state, *at) == worst)
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
