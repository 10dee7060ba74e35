//! Frees disk space: worktrees of dead drivers and, on request, transcripts and salvaged work.
//!
//! Never removes a run or anything that is evidence of one.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::engine::recover;
use crate::engine::run_lock::{self, RunLock};
use crate::git::refs;
use crate::ledger::chain::Writer;
use crate::model::any_error::AnyError;
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::Item;
use crate::run::query::{self, View};
use crate::worktree::filters::Filters;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Leftover, Workspace};

use super::replaced;

/// Options for cleaning.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Request {
    /// Include transcripts of sealed runs.
    pub transcripts: bool,
    /// Include work saved from interrupted attempts of sealed runs.
    pub salvage: bool,
    /// Remove worktrees without saving their work, and unsaved work of earlier attempts; for a full
    /// disk.
    pub discard: bool,
    /// Remove; otherwise only list.
    pub remove: bool,
}

/// Something that can be removed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Piece {
    /// `worktree`, whose work is saved first, or `transcripts`, `salvage` or `pool`.
    #[cfg_attr(feature = "schemas", schemars(extend("enum" = ["worktree", "transcripts", "salvage", "pool"])))]
    pub kind: &'static str,
    /// The run; `None` for a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether it is gone.
    pub removed: bool,
    /// For a worktree: the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// For a worktree: the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The ref of anything else; an archived run may lack it.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl Piece {
    fn worktree(run: &RunId, left: &Leftover, host: &Host) -> Self {
        let (item, attempt) = (Some(left.item.clone()), Some(left.attempt));
        Self { kind: "worktree", run: Some(run.clone()), item, attempt, ..Self::folder(&left.dir, left.bytes(host)) }
    }

    /// Returns a folder, or the used worktrees of a dead driver.
    pub(super) fn folder(path: &Path, bytes: u64) -> Self {
        let (removed, path) = (!path.exists(), Some(path.display().to_string()));
        Self { kind: "pool", run: None, bytes, removed, item: None, attempt: None, path, reference: None }
    }

    /// Returns the folder or ref.
    pub fn place(&self) -> &str {
        self.path.as_deref().or(self.reference.as_deref()).unwrap_or_default()
    }
}

/// The result for one run.
#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// Removed or removable things.
    pub pieces: Vec<Piece>,
    /// Messages about what happened.
    pub notes: Vec<String>,
}

/// Cleans one run in all folders of worktrees; skips it if it has a running driver.
///
/// After an error, everything not yet removed is unchanged. `filters` configures the filters that
/// saved files pass through.
pub fn clean(
    writer: &Writer,
    hosts: &[Host],
    run: &RunId,
    request: Request,
    filters: &dyn Fn(&Item) -> Filters,
) -> Result<Cleaned, AnyError> {
    let store = &writer.store;
    let mut cleaned = Cleaned::default();
    let _hold = match RunLock::take(&store.common_dir(), run) {
        Ok(hold) => hold,
        Err(locked @ run_lock::Error::Held { .. }) => {
            cleaned.notes.push(format!("{locked}; it is left alone"));
            return Ok(cleaned);
        }
        Err(other) => return Err(Error::Hold(other).into()),
    };
    let view = query::view(store, run, &format::run_ref(run))?.ok_or_else(|| query::Error::Unknown(run.clone()))?;
    // Removes salvaged work before worktrees, so that work saved from them now is kept.
    if request.transcripts {
        cleaned.pieces.extend(delete(writer, &view, "transcripts", request.remove)?);
    }
    if request.salvage {
        cleaned.pieces.extend(delete(writer, &view, "salvage", request.remove)?);
    }
    for host in hosts {
        clear(host, &view, request, filters, &mut cleaned)?;
    }
    Ok(cleaned)
}

/// Removes the worktrees of a run from one folder, after saving their work.
fn clear(
    host: &Host,
    view: &View,
    request: Request,
    filters: &dyn Fn(&Item) -> Filters,
    cleaned: &mut Cleaned,
) -> Result<(), AnyError> {
    let run = &view.run;
    let mut left = Workspace::leftovers(host, run).map_err(Error::Workspace)?;
    if request.discard {
        left.extend(Workspace::unsaved(host, run).map_err(Error::Workspace)?);
    }
    let mut worktrees: Vec<Piece> = left.iter().map(|left| Piece::worktree(run, left, host)).collect();
    let folders: Vec<PathBuf> = left.iter().map(|left| left.dir.clone()).collect();
    if request.remove && !worktrees.is_empty() {
        if request.discard {
            cleaned.notes.extend(recover::discard(host, run, left, view.state.submitted.base)?);
        } else {
            cleaned.notes.extend(recover::clear(run, &view.state, host, filters)?);
        }
        host.leave(run).map_err(Error::Workspace)?;
        worktrees.iter_mut().zip(&folders).for_each(|(piece, folder)| piece.removed = !folder.exists());
    }
    cleaned.pieces.extend(worktrees);
    cleaned.notes.extend(set_aside(host, run));
    Ok(())
}

/// Deletes the transcripts or the salvaged work of a sealed run: their ref, or their replacement
/// after archiving.
fn delete(writer: &Writer, view: &View, kind: &'static str, remove: bool) -> Result<Option<Piece>, AnyError> {
    let (store, run) = (&writer.store, &view.run);
    let reference = if kind == "salvage" { format::salvage_ref(run) } else { format::transcripts_ref(run) };
    let tree = match refs::read(store, &reference)? {
        Some(tree) if view.state.sealed => tree,
        _ => return Ok(None),
    };
    let bytes = store.tree_size(tree)?;
    if remove {
        if refs::is_stored(store, &reference)? {
            refs::delete(store, &reference, tree)?;
        }
        replaced::forget(writer, &format::kept_path(kind, run))?;
    }
    let (run, reference) = (Some(run.clone()), Some(reference));
    Ok(Some(Piece { kind, run, bytes, removed: remove, item: None, attempt: None, path: None, reference }))
}

/// Reports work that could not be saved.
fn set_aside(host: &Host, run: &RunId) -> Vec<String> {
    let entries = fs::read_dir(host.settings.root.join(run.encoded())).into_iter().flatten().flatten();
    let unsaved = entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with("-unsaved"));
    unsaved.map(|path| format!("{} holds work that could not be saved; it is left alone", path.display())).collect()
}

errors! {
    /// An error while cleaning.
    #[derive(Debug, thiserror::Error)] pub enum Error = "clean";
    Pool(PathBuf, #[source] std::io::Error): "the spent worktrees in {} could not be removed" [.0.display()];
    #[from "clean"] Hold(run_lock::Error), Workspace(workspace::Error);
}
