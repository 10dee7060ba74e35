//! `git handoff pipeline show`

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Show the blocks of a pipeline
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The pipeline: its id, its hash, or ID@HASH
    #[arg(value_name = "PIPELINE")]
    pipeline: String,
}

/// Prints the blocks in order.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.show_pipeline(&arguments.pipeline)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    output.line(&format!("pipeline   {}", answer.id));
    output.line(&format!("hash       {}", answer.hash));
    if !answer.registered {
        output.line(&format!("named      {} alone: its id names other bytes now, or none", answer.pinned));
    }
    output.line("");
    for (at, block) in answer.blocks.iter().enumerate() {
        output.line(&format!("  [{at}] {block}"));
    }
    Ok(Ending::Done)
}
