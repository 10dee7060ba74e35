//! How the items of a run came out, counted.

use std::collections::BTreeMap;

use super::RunState;
use crate::model::outcomes::Outcomes;

impl RunState {
    /// Returns how the items came out so far.
    pub fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for (at, item) in self.items.iter().enumerate() {
            if self.is_superseded(at) {
                outcomes.superseded += 1;
            } else {
                outcomes.add(item.phase, self.is_red(at));
            }
        }
        outcomes.said = self.conclusions().map(|concluded| concluded.outcome.clone()).collect();
        outcomes
    }

    /// Returns the number of items per stored status, as a seal has it: red ones are done.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for status in self.items.iter().filter_map(|item| item.phase.stored()) {
            *counts.entry(status.to_owned()).or_default() += 1;
        }
        counts
    }
}
