//! Estimates when an open run ends, by the pace at which its last items ended.

use serde::Serialize;

use crate::model::entry::Event;
use crate::model::state::RunState;
use crate::model::time::Moment;

use super::View;

/// How many of the last items count.
const MOST: usize = 20;

/// The fewest items that show a pace.
const FEWEST: usize = 3;

/// The pace of a run, and the time that the rest takes at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    /// How many items ended last.
    pub items: usize,
    /// The milliseconds in which they ended, until now.
    pub within_ms: u64,
    /// The milliseconds that the items that are left take at this pace.
    pub left_ms: u64,
}

impl Estimate {
    /// Returns the pace of an open run. Returns `None` without enough items that ended and one that
    /// runs, or if a person has to decide first.
    pub fn from_view(view: &View, now: Moment) -> Option<Self> {
        let state = &view.state;
        if state.sealed || state.waiting_for_people().next().is_some() {
            return None;
        }
        let left = count_items(state, &["pending", "ready", "running"]);
        if count_items(state, &["running"]) == 0 {
            return None;
        }
        let ended = view.links.iter().rev().filter(|link| matches!(link.entry.event, Event::ItemReconciled(_)));
        let last: Vec<Moment> = ended.take(MOST + 1).map(|link| link.entry.at).collect();
        // The pace is that of the items after the first of these ends.
        let (items, first) = (last.len().checked_sub(1)?, last.last()?);
        let within_ms = u64::try_from(now.millis() - first.millis()).ok()?;
        (items >= FEWEST && within_ms > 0).then(|| {
            let left_ms = within_ms.saturating_mul(left as u64) / items as u64;
            Self { items, within_ms, left_ms }
        })
    }
}

/// Returns the number of items with one of some statuses.
fn count_items(state: &RunState, words: &[&str]) -> usize {
    state.items.indices().filter(|at| words.contains(&state.status(*at))).count()
}
