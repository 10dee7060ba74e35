//! Frees disk space: worktrees of dead drivers and, on request, transcripts and salvaged work.
//!
//! Never removes a run or anything that is evidence of one.

use std::fs;
use std::path::PathBuf;

use crate::engine::run_lock::{self, RunLock};
use crate::engine::{drive, recover};
use crate::git::refs;
use crate::git::store;
use crate::ledger::chain::Writer;
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::Item;
use crate::run::query::{self, View};
use crate::worktree::filters::Filters;
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Workspace};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The run that it belongs to.
    pub run: RunId,
    /// Its kind.
    pub what: What,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether it was removed.
    pub removed: bool,
}

/// A kind of removable thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The worktree of an attempt that no longer runs. Its work is saved to the salvage ref first.
    Worktree {
        /// The item.
        item: ItemId,
        /// The attempt.
        attempt: u32,
        /// The folder.
        path: PathBuf,
    },
    /// The transcripts of a run, by their ref; an archived run may lack the ref.
    Transcripts(String),
    /// Work saved from interrupted attempts, by its ref; an archived run may lack the ref.
    Salvage(String),
}

/// The result for one run.
#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// Removed or removable things.
    pub pieces: Vec<Piece>,
    /// Messages about what happened.
    pub notes: Vec<String>,
}

/// Cleans one run; skips it if it has a running driver.
///
/// After an error, everything not yet removed is unchanged. `filters` configures the filters that
/// saved files pass through.
pub fn clean(
    writer: &Writer,
    host: &Host,
    run: &RunId,
    request: Request,
    filters: &dyn Fn(&Item) -> Filters,
) -> Result<Cleaned, Error> {
    let store = &writer.store;
    let mut cleaned = Cleaned::default();
    let _hold = match RunLock::take(&store.common_dir(), run) {
        Ok(hold) => hold,
        Err(held @ run_lock::Error::Held { .. }) => {
            cleaned.notes.push(format!("{held}; it is left alone"));
            return Ok(cleaned);
        }
        Err(other) => return Err(other.into()),
    };
    let view = query::view(store, run, &format::run_ref(run))?.ok_or_else(|| query::Error::Unknown(run.clone()))?;
    // Removes salvaged work before worktrees, so that work saved from them now is kept.
    for what in asked_for(run, request) {
        cleaned.pieces.extend(delete(writer, &view, what, request.remove)?);
    }
    let mut left = Workspace::leftovers(host, run)?;
    if request.discard {
        left.extend(Workspace::unsaved(host, run)?);
    }
    let found = left.iter().map(|left| Piece {
        run: run.clone(),
        bytes: left.bytes(host),
        what: What::Worktree { item: left.item.clone(), attempt: left.attempt, path: left.dir.clone() },
        removed: false,
    });
    let mut worktrees: Vec<Piece> = found.collect();
    if request.remove && !worktrees.is_empty() {
        if request.discard {
            cleaned.notes.extend(recover::discard(host, run, left, view.state.submitted.base)?);
        } else {
            cleaned.notes.extend(recover::clear(run, &view.state, host, filters)?);
        }
        host.leave(run)?;
        for piece in &mut worktrees {
            piece.removed = matches!(&piece.what, What::Worktree { path, .. } if !path.exists());
        }
    }
    cleaned.pieces.extend(worktrees);
    cleaned.notes.extend(set_aside(host, run));
    Ok(cleaned)
}

fn asked_for(run: &RunId, request: Request) -> Vec<What> {
    let mut asked = Vec::new();
    if request.transcripts {
        asked.push(What::Transcripts(format::transcripts_ref(run)));
    }
    if request.salvage {
        asked.push(What::Salvage(format::salvage_ref(run)));
    }
    asked
}

/// Deletes a ref that a sealed run does not need, or its replacement after archiving.
fn delete(writer: &Writer, view: &View, what: What, remove: bool) -> Result<Option<Piece>, Error> {
    let store = &writer.store;
    let (reference, folder) = match &what {
        What::Transcripts(reference) => (reference, "transcripts"),
        What::Salvage(reference) => (reference, "salvage"),
        What::Worktree { .. } => return Ok(None),
    };
    let tree = match refs::read(store, reference)? {
        Some(tree) if view.state.sealed => tree,
        _ => return Ok(None),
    };
    let bytes = store.tree_size(tree)?;
    if remove {
        if refs::is_stored(store, reference)? {
            refs::delete(store, reference, tree)?;
        }
        replaced::forget(writer, &format::kept_path(folder, &view.run))?;
    }
    Ok(Some(Piece { run: view.run.clone(), what, bytes, removed: remove }))
}

/// Reports work that could not be saved.
fn set_aside(host: &Host, run: &RunId) -> Vec<String> {
    let entries = fs::read_dir(host.settings.root.join(run.encoded())).into_iter().flatten().flatten();
    let unsaved = entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with("-unsaved"));
    unsaved.map(|path| format!("{} holds work that could not be saved; it is left alone", path.display())).collect()
}

/// An error while cleaning.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("{0}")]
    Hold(#[from] run_lock::Error),
    #[error("{0}")]
    Run(#[from] query::Error),
    #[error("{0}")]
    Ref(#[from] refs::Error),
    #[error("{0}")]
    Kept(#[from] super::archive::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("{0}")]
    Workspace(#[from] workspace::Error),
    #[error("the spent worktrees in {} could not be removed", .0.display())]
    Pool(PathBuf, #[source] std::io::Error),
    #[error("{0}")]
    Clear(#[from] drive::Error),
}
