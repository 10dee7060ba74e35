//! `git handoff pipeline add`

use std::path::PathBuf;

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, validate};

/// Register a pipeline, so that plans can name it
///
/// Its bytes are kept in the repository's git directory; what becomes of the file afterwards counts for nothing. Another pipeline of
/// the same id gives way, and can still be named by its hash.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The pipeline's file, or - for standard input
    file: PathBuf,
}

/// Registers it, and prints what plans call just these bytes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let bytes = super::read(&arguments.file)?;
    let added = match repository.add_pipeline(&bytes)? {
        Ok(added) => added,
        Err(problems) => return Ok(validate::refuse(&problems, output)),
    };
    if output.json {
        output.value(&added);
    } else {
        output.line(&added.pinned);
    }
    match added.replaced {
        Some(before) => output.note(&format!("{} was {before} before", added.id)),
        None if !added.added => output.note("it is registered already; nothing changed"),
        None => {}
    }
    Ok(Ending::Done)
}
