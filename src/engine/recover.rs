//! Clears away what a dead driver left on the disk, before anything is dispatched again.

use std::error::Error;
use std::io;

use crate::git::store::Edit;
use crate::model::causes::{self, in_words};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::RunId;
use crate::model::plan::Item;
use crate::model::state::{Phase, RunState};
use crate::worker::filters::Filters;
use crate::worker::salvage::{self, Salvaged};
use crate::worker::workspace::{Leftover, UNSAVED, Workspace};
use crate::worker::{host::Host, survivors};

use super::retain;

/// Ends what still runs, saves the work to the salvage ref, and removes the worktrees; returns what to tell the operator.
///
/// To be called while holding the run. `filters` says where those run that a file of an item's may go through. Work that cannot be saved stays where it is, and the note says where.
pub fn clear(
    run: &RunId,
    run_state: &RunState,
    host: &Host,
    filters: &dyn Fn(&Item) -> Filters,
) -> Result<Vec<String>, super::drive::Error> {
    let mut notes = Vec::new();
    for leftover in Workspace::leftovers(host, run)? {
        let ended = survivors::end(survivors::Left::Stranded, &leftover.dir);
        if ended > 0 {
            notes.push(format!("{}: ended {ended} process(es) that outlived their driver", leftover.item));
        }
        let (item, attempt) = (leftover.item.clone(), leftover.attempt);
        let Some(workspace) = Workspace::reopen(host, run, leftover, run_state.submitted.base)? else {
            notes.push(format!("{item}: what stood in the place of attempt {attempt}'s worktree was removed"));
            continue;
        };
        let at = run_state.graph.position(&item);
        let state = at.map(|at| &run_state.items[at]);
        let done = state.is_some_and(|state| state.phase == Phase::Done && state.attempts == attempt);
        if done || !workspace.was_started() {
            // Its products are recorded, and the driver died before it could tidy up; or nothing ever ran in it.
            workspace.remove()?;
            continue;
        }
        // Nothing of it is saved, and room may be short.
        workspace.remove_private()?;
        let filters = at.map_or(Filters::Nowhere, |at| filters(run_state.graph.item(at)));
        match salvage::salvage(&workspace, &host.filtering(filters)) {
            Ok(Some(saved)) => {
                notes.extend(saved.told(&item, attempt));
                let Salvaged { tree, kept: _kept, .. } = saved;
                let path = format::transcript_path(&item, attempt);
                retain::add(&host.store, &format::salvage_ref(run), &[(path, Edit::Tree(tree))])?;
                notes.push(format!("{item}: the work of attempt {attempt} was saved to {}", format::salvage_ref(run)));
            }
            Ok(None) => {}
            // There is space again some day, or a driver without this limit; until then the work waits where it is.
            Err(error) if is_shortage(&error) => {
                return Err(super::drive::Error::Salvage(Box::new(error)));
            }
            Err(error) => {
                let aside = workspace.dir.with_extension(format!("{attempt}{UNSAVED}"));
                notes.push(format!(
                    "{item}: the work of attempt {attempt} could not be saved and stays in {}: {}",
                    aside.display(),
                    in_words(&error)
                ));
                std::fs::rename(&workspace.dir, &aside).map_err(super::drive::Error::Aside)?;
                continue;
            }
        }
        workspace.remove()?;
    }
    Ok(notes)
}

/// Ends what still runs in attempts that were left, and removes their worktrees with the work in them; returns what to tell the
/// operator. To be called while holding the run.
pub fn discard(host: &Host, run: &RunId, left: Vec<Leftover>, base: Oid) -> Result<Vec<String>, super::drive::Error> {
    let mut notes = Vec::new();
    for leftover in left {
        survivors::end(survivors::Left::Stranded, &leftover.dir);
        notes.push(format!("{}: the work of attempt {} is discarded", leftover.item, leftover.attempt));
        if let Some(workspace) = Workspace::reopen(host, run, leftover, base)? {
            workspace.remove()?;
        }
    }
    Ok(notes)
}

/// Returns whether something failed because the machine, or a limit on this process, has too little for now.
///
/// What git says comes as text, in which only the full disk is looked for: workers choose the names of files in it.
fn is_shortage(error: &(dyn Error + 'static)) -> bool {
    causes::chain(error).any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_short))
        || in_words(error).contains("No space left on device")
}

/// Returns true if something failed because a file system, or a user's share of it, is full.
pub(super) fn is_full(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let is_full = |error: &io::Error| matches!(error.kind(), QuotaExceeded | StorageFull);
    causes::chain(error).any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_full))
        || in_words(error).contains("No space left on device")
}

fn is_short(error: &io::Error) -> bool {
    use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
    #[cfg(unix)]
    let files = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(rustix::io::Errno::raw_os_error);
    #[cfg(not(unix))]
    let files: [i32; 0] = [];
    // No process can be forked: that, too, is told as something that would block.
    matches!(error.kind(), OutOfMemory | QuotaExceeded | StorageFull | WouldBlock)
        || error.raw_os_error().is_some_and(|code| files.contains(&code))
}
