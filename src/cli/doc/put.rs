//! `git handoff doc put`

use std::path::PathBuf;

use git_handoff::model::hints;
use git_handoff::run::operate::documents::{NewRevision, Uncompared};
use git_handoff::run::query::Target;

use super::super::remote_read::Offline;
use super::super::{context, gate};
use super::{Ending, Failure, Output, Repository};

/// Put a file on a run as the next revision of a document
///
/// The run must not be sealed or closed, and your key needs the role `document`. For a fetched run,
/// the revision is recorded in your key's log; push it, and the run's driver takes it over with
/// `fetch`. Two writers at once get successive revisions, unless --if-match forbids it.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// The document's name; it may contain slashes
    name: String,
    /// The file, or - for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Validate against this registered schema: ID@N
    #[arg(long, value_name = "SCHEMA")]
    schema: Option<String>,
    /// Put it only if the highest revision has this SHA-256, or with `none`, if there is no
    /// document
    #[arg(long, value_name = "SHA256|none")]
    if_match: Option<String>,
    #[command(flatten)]
    terms: gate::Terms,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Puts the document, and prints the revision.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let request = NewRevision {
        run: &arguments.run,
        name: &arguments.name,
        schema: arguments.schema.as_deref(),
        if_match: arguments.if_match.as_deref(),
    };
    let (target, rest) = Target::with_rest(&repository.store, &arguments.run)?;
    if rest.is_none() && !target.is_own() {
        let run = gate::vetted(&target, arguments.terms, repository, output)?;
        let statement = repository.write_elsewhere(&run, &request, || context::save(repository, &arguments.file))?;
        if !output.answers(&statement) {
            output.line(&format!("{}: {} {}, in your log", statement.run, statement.name, statement.sha256));
            output.hint(&hints::push_said(target.remote().unwrap_or_default(), &statement.run));
        }
        warn(&statement.uncompared, output);
        return Ok(Ending::Done);
    }
    let put = repository.put_document(&request, || context::save(repository, &arguments.file))?;
    if !output.answers(&put) {
        let (name, revision) = (&put.document.name, &put.document.revision);
        output.line(&format!("{}: {name} revision {} {}", put.run, revision.number, revision.product.sha256));
    }
    warn(&put.uncompared, output);
    Ok(Ending::Done)
}

fn warn(uncompared: &[Uncompared], output: &mut Output) {
    for Uncompared { rule, reason } in uncompared {
        output.warn(&format!("the rule {rule} cannot compare this revision: {reason}"));
    }
}
