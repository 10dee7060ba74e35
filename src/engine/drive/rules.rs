//! Applies the rules while a run is driven.

use crate::engine::event::Progress;
use crate::model::state::RunState;
use crate::run::operate::coordinate::{self, Changed};

use super::{Driver, Error};

/// How much input the rules of a run have. Both numbers only grow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RuleInput {
    documents: usize,
    changes: u64,
}

impl RuleInput {
    fn from_state(state: &RunState) -> Self {
        Self { documents: state.documents.count(), changes: state.changes() }
    }
}

impl Driver<'_> {
    /// Applies the rules if their input changed.
    pub(super) fn apply_rules(&mut self) -> Result<(), Error> {
        let now = RuleInput::from_state(&self.run.state);
        if self.run.state.rules.is_empty() || self.rules_applied_to == Some(now) {
            return Ok(());
        }
        let changed = self.rules_applied_to.map_or(Changed::ANYTHING, |before| Changed {
            documents: before.documents != now.documents,
            items: before.changes != now.changes,
        });
        self.rules_applied_to = Some(now);
        if !coordinate::is_due(self.run.store(), &self.run.state, changed)? {
            return Ok(());
        }
        self.record(&[])?;
        let links = coordinate::apply(self.run, self.machine.config.max_items)?;
        self.rules_applied_to = Some(RuleInput::from_state(&self.run.state));
        self.schedule.grow(&self.run.state);
        links.iter().for_each(|link| (self.tell)(Progress::Recorded(link, &self.run.state)));
        self.catch_up()?;
        // A new item may depend on one that is lost already.
        if links.is_empty() { Ok(()) } else { self.sweep() }
    }
}
