//! Frees what runs left on the disk: worktrees of dead drivers, and, when asked for, transcripts and salvaged work.
//!
//! No run, and nothing that a run's evidence needs, is ever removed.

use std::fs;
use std::path::PathBuf;

use crate::engine::hold::{self, Hold};
use crate::engine::{drive, recover};
use crate::git::refs;
use crate::git::store;
use crate::ledger::chain::Writer;
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::plan::Item;
use crate::run::{self, View};
use crate::worker::filters::Filters;
use crate::worker::host::Host;
use crate::worker::workspace::{self, Workspace};

use super::replaced;

/// What to look for, and whether to remove it.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Request {
    /// Transcripts of sealed runs as well.
    pub transcripts: bool,
    /// Work saved from interrupted attempts of sealed runs as well.
    pub salvage: bool,
    /// Remove worktrees without saving their work first, and work that could not be saved before: for a disk that is full.
    pub discard: bool,
    /// Remove it; otherwise it is only listed.
    pub remove: bool,
}

/// One thing that can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The run that it belongs to.
    pub run: RunId,
    /// What it is.
    pub what: What,
    /// How many bytes it takes.
    pub bytes: u64,
    /// Whether it is gone.
    pub removed: bool,
}

/// What can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The worktree of an attempt that nobody runs any more; its work is saved to the salvage ref first.
    Worktree {
        /// The item.
        item: ItemId,
        /// The attempt.
        attempt: u32,
        /// The folder.
        path: PathBuf,
    },
    /// The transcripts of a run, by their ref, which an archived run need not have.
    Transcripts(String),
    /// Work saved from interrupted attempts, by its ref, likewise.
    Salvage(String),
}

/// What was found in one run.
#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// What can go, or is gone.
    pub pieces: Vec<Piece>,
    /// What happened on the way, in sentences.
    pub notes: Vec<String>,
}

/// Looks at one run and removes what was asked for; a run that somebody drives is left alone.
///
/// After an error, everything that is not gone is as it was. `filters` says where those run that a saved file of an item's may go
/// through.
pub fn clean(
    writer: &Writer,
    host: &Host,
    run: &RunId,
    request: Request,
    filters: &dyn Fn(&Item) -> Filters,
) -> Result<Cleaned, Error> {
    let store = &writer.store;
    let mut cleaned = Cleaned::default();
    let _hold = match Hold::take(&store.common_dir(), run) {
        Ok(hold) => hold,
        Err(held @ hold::Error::Held { .. }) => {
            cleaned.notes.push(format!("{held}; it is left alone"));
            return Ok(cleaned);
        }
        Err(other) => return Err(other.into()),
    };
    let view = run::view(store, run, &format::run_ref(run))?.ok_or_else(|| run::Error::Unknown(run.clone()))?;
    // Salvage goes before worktrees: what is saved from them now was never offered for removal.
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

/// Deletes what a sealed run can do without: its ref, and what is kept in the place of that since the run was archived.
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

/// Tells of work that could not be saved, which is for a person to look at.
fn set_aside(host: &Host, run: &RunId) -> Vec<String> {
    let entries = fs::read_dir(host.root.join(run.encoded())).into_iter().flatten().flatten();
    let unsaved = entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with("-unsaved"));
    unsaved.map(|path| format!("{} holds work that could not be saved; it is left alone", path.display())).collect()
}

/// What can go wrong with cleaning up.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error(transparent)]
    Hold(#[from] hold::Error),
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Ref(#[from] refs::Error),
    #[error(transparent)]
    Kept(#[from] super::archive::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    #[error("the spent worktrees in {} could not be removed", .0.display())]
    Pool(PathBuf, #[source] std::io::Error),
    #[error(transparent)]
    Clear(#[from] drive::Error),
}
