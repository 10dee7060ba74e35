//! What the conductor needs to know about this machine, and what follows from it for a run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use super::command;
use crate::config::Config;
use crate::model::state::RunState;
use crate::worker::site::Site;

/// What the conductor needs to know about this machine.
#[derive(Clone)]
pub struct Setting {
    /// The configuration.
    pub config: Arc<Config>,
    /// The environment of our own process, of which executors see a part.
    pub ambient: Arc<BTreeMap<String, OsString>>,
    /// Where worktrees are made.
    pub site: Arc<Site>,
    /// Whether to close and seal the run even if not every item got done.
    pub close: bool,
}

impl Setting {
    /// Returns whether an item may be dispatched once more after its latest attempt.
    pub(super) fn attempts_left(&self, state: &RunState, at: usize) -> bool {
        let most = command::max_attempts(state.graph.item(at), &state.submitted.queue, &self.config);
        state.items[at].attempts - state.items[at].granted_at < most
    }
}
