//! `git handoff doc log`

use git_handoff::run::query::revisions::Change;

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// Show the revisions of a document, newest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name
    name: String,
}

/// Prints one line for each revision.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.document_log(&arguments.run, &arguments.name)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    let rows: Vec<Vec<String>> = answer
        .revisions
        .iter()
        .map(|Change { revision, at, .. }: &Change| {
            vec![
                revision.number.to_string(),
                revision.product.sha256.to_string(),
                revision.is(),
                table::size(revision.product.size),
                at.to_string(),
                format!("entry {}", revision.entry),
                revision.author.to_string(),
            ]
        })
        .collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}
