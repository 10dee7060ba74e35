//! `git handoff doc get`

use git_handoff::run::query::documents::WantedRevision;

use super::super::cat::Stdout;
use super::super::gate;
use super::{Ending, Failure, Output, Repository};

/// Print the exact bytes of a document
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name
    name: String,
    /// Print this revision [default: the highest]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    revision: Option<u64>,
    /// Require this schema, ID or ID@N like report@1; otherwise print nothing and explain
    #[arg(long, value_name = "SCHEMA")]
    expect: Option<String>,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints the bytes, if they match the record and the schema.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let request = WantedRevision {
        run: &arguments.run,
        name: &arguments.name,
        revision: arguments.revision,
        expect: arguments.expect.as_deref(),
    };
    let (name, schema) = request.read()?;
    let run = super::vetted(repository, request.run, arguments.terms, output)?;
    let change = request.find(&run, &name, schema.as_ref())?;
    repository.give_document(&run, &change, &mut Stdout { output })?;
    Ok(Ending::Done)
}
