//! Finds in the entries when items began and ended.

use serde::Serialize;

use crate::model::entry::Event;
use crate::model::item_index::ItemVec;
use crate::model::time::Moment;

use super::View;

/// The times of an item's latest attempt.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// The time of its dispatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Moment>,
    /// When it ended, or the item was decided, skipped or cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl Times {
    /// Returns the times of all items, by position.
    pub fn from_view(view: &View) -> ItemVec<Self> {
        let mut all = view.state.items.map(|_| Self::default());
        for link in &view.links {
            let Some((item, _)) = link.entry.event.item() else { continue };
            let Some(at) = view.state.graph.position(item) else { continue };
            all[at].update(&link.entry.event, link.entry.at);
        }
        all
    }

    fn update(&mut self, event: &Event, at: Moment) {
        if matches!(event, Event::ItemFired(_)) {
            *self = Self { started_at: Some(at), ..Self::default() };
            return;
        }
        let since = self.started_at.filter(|_| self.ended_at.is_none());
        self.ended_at = Some(at);
        self.duration_ms = match event {
            Event::ItemReconciled(e) => Some(e.duration_ms).filter(|_| self.started_at.is_some()),
            _ => since.map(|since| between(since, at)).or(self.duration_ms),
        };
    }
}

/// Returns the milliseconds between two moments, or 0 if the clock went back.
pub fn between(from: Moment, to: Moment) -> u64 {
    u64::try_from(to.millis().saturating_sub(from.millis())).unwrap_or(0)
}
