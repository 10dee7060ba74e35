//! Counts items by result.

use super::{Phase, RunState};
use crate::model::entry::{ItemReconciled, Outcome};
use crate::model::item_index::ItemIndex;
use crate::model::outcomes::{Outcomes, Stopped};

impl RunState {
    /// Returns the counts so far.
    pub fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for (at, item) in self.items.indexed() {
            if self.is_superseded(at) {
                outcomes.superseded += 1;
            } else {
                outcomes.add(item.phase, self.is_red(at));
                let is_claimed = item.phase == Phase::Done && self.graph.item(at).is_claimed();
                outcomes.claimed += u64::from(is_claimed);
                outcomes.handed_over_nothing += u64::from(self.handed_over_nothing(at));
            }
        }
        outcomes.said = self.conclusions().map(|concluded| concluded.outcome.clone()).collect();
        let mut stopped = self.stops();
        outcomes.stopped = stopped.next();
        outcomes.also_stopped = stopped.collect();
        outcomes
    }

    /// Returns the rules that stopped early, those with an outcome first.
    fn stops(&self) -> impl Iterator<Item = Stopped> + '_ {
        let concluded = self.conclusions().map(|concluded| {
            let reason = concluded
                .detail
                .as_ref()
                .map_or_else(|| concluded.outcome.clone(), |detail| format!("{}: {detail}", concluded.outcome));
            Stopped { rule: concluded.rule.clone(), reason }
        });
        let short = self.stopped.iter().map(|(rule, reason)| Stopped { rule: rule.clone(), reason: reason.clone() });
        concluded.chain(short)
    }

    /// Returns true if an item is done without products although it could have some.
    ///
    /// An approval, a gate, an item with `produces: []`, and one whose pipeline captures nothing
    /// cannot have products.
    pub fn handed_over_nothing(&self, at: ItemIndex) -> bool {
        let (item, state) = (self.graph.item(at), &self.items[at]);
        let by_design = item.is_for_people()
            || self.is_gate(at)
            || state.only_checks
            || item.produces.as_ref().is_some_and(Vec::is_empty);
        state.phase == Phase::Done && state.products.is_empty() && !by_design
    }

    /// Returns true if an entry completes an item without products.
    pub fn ended_with_nothing(&self, e: &ItemReconciled) -> bool {
        e.status == Outcome::Done && self.graph.position(&e.item).is_some_and(|at| self.handed_over_nothing(at))
    }
}
