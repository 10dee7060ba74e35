//! `git handoff doc list`

use git_handoff::run::query::revisions::Change;

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// List the documents of a run with their highest revisions
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
}

/// Prints one line for each document.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.documents(&arguments.run)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    let rows: Vec<Vec<String>> = answer
        .documents
        .iter()
        .map(|Change { name, revision, at, .. }: &Change| {
            vec![
                name.to_string(),
                format!("revision {}", revision.number),
                revision.is(),
                table::size(revision.product.size),
                at.to_string(),
                revision.author.to_string(),
            ]
        })
        .collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}
