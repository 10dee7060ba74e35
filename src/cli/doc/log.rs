//! `git handoff doc log`

use git_handoff::model::name::FilePath;
use git_handoff::run::View;
use git_handoff::run::document::{self, Change};
use serde_json::{Value, json};

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

/// Prints one line a revision.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let name = super::name(&arguments.name)?;
    let view = super::view(repository, &arguments.run)?;
    let changes = document::log(&view, &name)?;
    if output.json {
        output.value(&value(&view, &name, &changes));
        return Ok(Ending::Done);
    }
    let row = |change: &Change| {
        let revision = &change.revision;
        vec![
            revision.number.to_string(),
            revision.product.sha256.to_string(),
            revision.is(),
            table::size(revision.product.size),
            change.at.to_string(),
            format!("entry {}", revision.entry),
            revision.author.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = changes.iter().rev().map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

/// Returns the revisions of a document, newest first, as `doc log --json` has them.
pub(crate) fn value(view: &View, name: &FilePath, changes: &[Change]) -> Value {
    let revisions: Vec<Value> = changes.iter().rev().map(super::value).collect();
    json!({ "schema": "git-handoff.document-log/1", "run": view.run, "name": name, "revisions": revisions })
}
