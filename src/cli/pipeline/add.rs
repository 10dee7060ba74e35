//! `git handoff pipeline add`

use std::path::PathBuf;

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, validate};

/// Register a pipeline, so that plans can use it
///
/// Copies the file into the git directory, so that later edits have no effect. Replaces another
/// pipeline with the same id, which can still be named by its hash.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file, or - for standard input
    file: PathBuf,
}

/// Registers the pipeline, and prints its names.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let bytes = super::read(&arguments.file)?;
    let added = match repository.add_pipeline(&bytes)? {
        Ok(added) => added,
        Err(problems) => return Ok(validate::refuse(&problems, output)),
    };
    if !output.answers(&added) {
        output.line(&added.pinned);
    }
    match added.replaced {
        Some(before) => output.note(&format!("{} was {before} before", added.id)),
        None if !added.added => output.note("it is registered already; nothing changed"),
        None => {}
    }
    Ok(Ending::Done)
}
