//! `git handoff thread log`

use git_handoff::model::thread::Checkpoint;
use git_handoff::thread::answers::CheckpointShown;

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// Show the checkpoints of a thread, newest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The threads; several only with --graph
    #[arg(required = true)]
    threads: Vec<String>,
    /// Draw the threads and those that they come from, as `git log --graph` does
    #[arg(long)]
    graph: bool,
}

/// Prints one line for each checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    if arguments.graph {
        if output.json {
            return Err(Failure::usage("--graph is not for --json".to_owned()));
        }
        output.text(&repository.thread_graph(&arguments.threads)?);
        return Ok(Ending::Done);
    }
    let [thread] = arguments.threads.as_slice() else {
        return Err(Failure::usage("several threads are shown only with --graph".to_owned()));
    };
    let checkpoints = repository.thread_log(thread)?;
    if output.json {
        checkpoints.iter().for_each(|checkpoint| output.value(&CheckpointShown::new(checkpoint)));
        return Ok(Ending::Done);
    }
    let rows: Vec<Vec<String>> = checkpoints.iter().map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

fn row(checkpoint: &Checkpoint) -> Vec<String> {
    let (entry, content) = (&checkpoint.entry, checkpoint.content());
    vec![
        checkpoint.id.to_string(),
        entry.at.to_string(),
        entry.actor.clone(),
        entry.event.origin().map_or_else(|| "saved".to_owned(), ToString::to_string),
        table::size(content.state.size),
        content.summary.clone().unwrap_or_default(),
    ]
}
