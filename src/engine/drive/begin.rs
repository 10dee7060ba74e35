//! Checks before a run is driven.

use crate::engine::machine::Machine;
use crate::model::state::Phase;
use crate::run::operate::OpenRun;
use crate::worktree::workspace::Workspace;

use super::Error;

/// The largest difference between clocks that is not reported.
const CLOCK_LEEWAY_MILLIS: u64 = 60 * 60 * 1000;

/// Fails if the run is not shared yet, and an attempt runs whose worktree is not here.
///
/// The lock of the run proves that its driver of this repository is dead, but nothing of one
/// elsewhere.
pub(super) fn expect_driven_here(run: &OpenRun, machine: &Machine) -> Result<(), Error> {
    if run.state.shared.is_some() {
        return Ok(());
    }
    let running = run.state.items.indexed().filter(|(_, item)| item.phase == Phase::Running);
    for (at, item) in running {
        let id = &run.state.graph.item(at).id;
        if !Workspace::place(&machine.host, run.id(), id, item.attempts).exists() {
            return Err(Error::DrivenElsewhere(run.id().clone(), id.clone()));
        }
    }
    Ok(())
}

/// Returns a note if the local clock is behind the last entry by more than clocks usually differ.
/// No entry is dated before the one that it follows.
pub(super) fn clock_note(run: &OpenRun) -> Option<String> {
    let now = run.writer().clock.now();
    let last = run.head().at.filter(|last| now.plus_millis(CLOCK_LEEWAY_MILLIS) < *last)?;
    Some(format!(
        "it is {now} here, and the run dates its last entry {last}: one of the two clocks is wrong, and what follows gets \
         that date"
    ))
}
