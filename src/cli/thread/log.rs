//! `git handoff thread log`

use git_handoff::thread::answers::CheckpointShown;

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// Show the checkpoints of a thread, newest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
}

/// Prints one line for each checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let checkpoints = repository.thread_log(&arguments.thread)?;
    if output.json {
        checkpoints.iter().for_each(|checkpoint| output.value(checkpoint));
        return Ok(Ending::Done);
    }
    let rows: Vec<Vec<String>> = checkpoints.iter().map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

fn row(checkpoint: &CheckpointShown) -> Vec<String> {
    vec![
        checkpoint.checkpoint_id.to_string(),
        checkpoint.at.to_string(),
        checkpoint.actor.clone(),
        checkpoint.kind.to_owned(),
        table::size(checkpoint.size),
        checkpoint.summary.clone().unwrap_or_default(),
    ]
}
