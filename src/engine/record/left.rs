//! Continues recordings: interrupted ones, and those whose work could not be taken.

use super::{Error, sealed};
use crate::engine::drive;
use crate::engine::machine;
use crate::model::any_error::AnyError;
use crate::model::name::RunId;
use crate::model::state::{Phase, RunState};
use crate::repository::Repository;
use crate::run::query::target::Target;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Leftover, Workspace};

impl Repository {
    /// Prepares to continue an open recording. If its command ended and its work was not taken, the
    /// next attempt takes what lies in the worktree instead of running the command again.
    pub fn continue_recording(&self, run: &RunId) -> Result<(), AnyError> {
        let state = Target::own(run.clone()).view(&self.store)?.state;
        let Some((at, item)) = sealed::recorded_item(&state) else {
            return Err(Error::NoRecording(run.clone()).into());
        };
        if state.sealed {
            return Err(Error::Taken(run.clone()).into());
        }
        if state.items[at].phase != Phase::Failed {
            return Ok(());
        }
        let host = machine::host(self)?;
        let left = left_by(&host, run, &state).map_err(drive::Error::from)?;
        let Some(left) = left else { return Err(Error::NothingLeft(run.clone()).into()) };
        let reason = format!("the work that attempt {} left in its worktree is to be taken", left.attempt);
        self.retry_because(&format!("{run}/{}", item.id), &reason)
    }
}

/// Returns the worktree that the last attempt of a recording left for a person, or `None`.
pub(in crate::engine) fn left_by(
    host: &Host,
    run: &RunId,
    state: &RunState,
) -> Result<Option<Leftover>, workspace::Error> {
    let Some((at, _)) = sealed::recorded_item(state) else { return Ok(None) };
    let last = state.items[at].attempts;
    Ok(Workspace::unsaved(host, run)?.into_iter().find(|left| left.attempt == last))
}
