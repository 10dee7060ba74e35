//! Cleans up after a dead driver, before anything is dispatched.

use std::io;
use std::path::Path;

use super::drive::Error;
use crate::git::store::Edit;
use crate::model::causes::{self, in_words};
use crate::model::digest::Oid;
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::Item;
use crate::model::state::{Phase, RunState};
use crate::process::survivors;
use crate::worktree::filters::Filters;
use crate::worktree::host::Host;
use crate::worktree::salvage::{self, Salvaged};
use crate::worktree::stray_commits;
use crate::worktree::workspace::{Leftover, Workspace};

use super::shortage::Shortage;
use super::transcript_refs;

/// Ends leftover processes, saves the work of their attempts to the salvage ref, and removes the
/// worktrees. Returns notes for the operator.
///
/// The caller holds the run lock. `filters` returns where the filters of an item run. Work that
/// cannot be saved stays on disk, and a note says where.
pub(crate) fn clear(
    run: &RunId,
    run_state: &RunState,
    host: &Host,
    filters: &dyn Fn(&Item) -> Filters,
) -> Result<Vec<String>, Error> {
    clear_some(run, run_state, host, filters, Workspace::leftovers(host, run)?)
}

/// Does the same for some of the attempts that are left.
pub(super) fn clear_some(
    run: &RunId,
    run_state: &RunState,
    host: &Host,
    filters: &dyn Fn(&Item) -> Filters,
    left: Vec<Leftover>,
) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for leftover in left {
        let ended = survivors::end(&leftover.dir);
        if ended > 0 {
            notes.push(format!("{}: ended {ended} process(es) that outlived their driver", leftover.item));
        }
        let (item, attempt) = (leftover.item.clone(), leftover.attempt);
        let Some(workspace) = Workspace::reopen(host, run, leftover, run_state.submitted.base)? else {
            notes.push(format!("{item}: removed files that were in the way of the worktree of attempt {attempt}"));
            continue;
        };
        notes.extend(workspace.end_agent_folders(true));
        let at = run_state.graph.position(&item);
        let state = at.map(|at| &run_state.items[at]);
        let done = state.is_some_and(|state| state.phase == Phase::Done && state.attempts == attempt);
        if done || !workspace.was_started() {
            // The products are recorded and only the worktree is left, or nothing ever ran in it.
            workspace.remove()?;
            continue;
        }
        // These files are not saved, and removing them makes space.
        workspace.remove_private()?;
        let has_all_commits = save_commits(&workspace, host, &mut notes)?;
        let filters = at.map_or(Filters::Nowhere, |at| filters(run_state.graph.item(at)));
        match salvage::salvage(&workspace, &host.filtering(filters)) {
            Ok(Some(saved)) => {
                notes.extend(saved.messages(&item, attempt));
                let is_whole = saved.is_whole();
                let Salvaged { tree, guard: _kept, .. } = saved;
                let path = format::transcript_path(&item, attempt);
                transcript_refs::add(&host.store, &format::salvage_ref(run), &[(path, Edit::Tree(tree))])
                    .map_err(Error::Keep)?;
                notes.push(format!("{item}: the work of attempt {attempt} was saved to {}", format::salvage_ref(run)));
                if !(is_whole && has_all_commits) {
                    let moved_to = workspace.set_aside()?;
                    notes.push(stays(&item, attempt, &moved_to));
                    continue;
                }
            }
            Ok(None) if has_all_commits => {}
            Ok(None) => {
                let moved_to = workspace.set_aside()?;
                notes.push(stays(&item, attempt, &moved_to));
                continue;
            }
            // The work waits on disk until there is space again.
            Err(error) if is_shortage(&error) => {
                return Err(Error::Salvage(Box::new(error)));
            }
            Err(error) => {
                let moved_to = workspace.set_aside()?;
                let (moved_to, why) = (moved_to.display(), in_words(&error));
                notes.push(format!(
                    "{item}: the work of attempt {attempt} could not be saved and stays in {moved_to}: {why}"
                ));
                continue;
            }
        }
        workspace.remove()?;
    }
    Ok(notes)
}

/// Saves the commits that the work of an attempt does not contain. Returns false if they are only
/// in the worktree.
fn save_commits(workspace: &Workspace, host: &Host, notes: &mut Vec<String>) -> Result<bool, Error> {
    let Ok(stray) = stray_commits::save(workspace, host) else { return Ok(false) };
    let (run, item) = (&workspace.run, &workspace.item);
    notes.extend(stray.sentences.iter().map(|sentence| format!("{item}: {sentence}")));
    let path = format::commits_path(item, workspace.attempt);
    let edits = stray.bundle.map(|bundle| (path, Edit::Blob(bundle)));
    transcript_refs::add(&host.store, &format::salvage_ref(run), edits.as_slice()).map_err(Error::Keep)?;
    Ok(stray.is_whole)
}

/// Returns a note that a worktree stays, because some of its work is nowhere else.
pub(super) fn stays(item: &ItemId, attempt: u32, folder: &Path) -> String {
    format!("{item}: the worktree of attempt {attempt} stays in {}", folder.display())
}

/// Ends leftover processes, and discards the work of their attempts. Returns notes for the
/// operator. The caller holds the run lock.
pub(crate) fn discard(host: &Host, run: &RunId, left: Vec<Leftover>, base: Oid) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for leftover in left {
        survivors::end(&leftover.dir);
        notes.push(format!("{}: the work of attempt {} is discarded", leftover.item, leftover.attempt));
        if let Some(workspace) = Workspace::reopen(host, run, leftover, base)? {
            notes.extend(workspace.end_agent_folders(false));
            workspace.remove()?;
        }
    }
    Ok(notes)
}

/// Returns true if an operation failed because the machine, or a limit of this process, lacks
/// something for now.
fn is_shortage(error: &(dyn std::error::Error + 'static)) -> bool {
    // A failed fork is reported as `WouldBlock`.
    Shortage::from_error(error).is_some()
        || causes::chain(error)
            .filter_map(<dyn std::error::Error>::downcast_ref)
            .any(|error: &io::Error| error.kind() == io::ErrorKind::WouldBlock)
}
