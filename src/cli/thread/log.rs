//! `git handoff thread log`

use git_handoff::model::thread::Checkpoint;
use serde_json::{Value, json};

use super::super::table;
use super::target::ThreadTarget;
use super::{Ending, Failure, Output, Repository};

/// Show the checkpoints of a thread, newest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
}

/// Prints one line a checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let sound = ThreadTarget::find(&repository.store, &arguments.thread)?.sound(&repository.store)?;
    if output.json {
        for checkpoint in sound.trail.checkpoints.iter().rev() {
            output.value(&value(checkpoint));
        }
        return Ok(Ending::Done);
    }
    let row = |checkpoint: &Checkpoint| {
        vec![
            checkpoint.id.to_string(),
            checkpoint.entry.at.to_string(),
            checkpoint.entry.actor.clone(),
            checkpoint.entry.event.kind().to_owned(),
            table::size(checkpoint.content.state.size),
            checkpoint.content.summary.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = sound.trail.checkpoints.iter().rev().map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

/// Returns a checkpoint as JSON answers give it: its entry, and what it holds where the entry only points at it.
pub(crate) fn value(checkpoint: &Checkpoint) -> Value {
    let content = &checkpoint.content;
    json!({
        "thread_id": checkpoint.entry.about.as_str(),
        "checkpoint_id": checkpoint.id,
        "kind": checkpoint.entry.event.kind(),
        "at": checkpoint.entry.at,
        "actor": checkpoint.entry.actor,
        "summary": content.summary,
        "blob_id": content.state.oid,
        "blob_sha256": content.state.sha256.hex(),
        "size": content.state.size,
        "packet": content.packet,
        "worktree": content.worktree,
        "base": content.base,
        "resumed": checkpoint.resumed,
        "hash": checkpoint.hash,
        "commit": checkpoint.commit,
        "entry": serde_json::from_slice::<Value>(&checkpoint.entry.canonical()).unwrap_or_default(),
    })
}
