//! `git handoff doc list`

use git_handoff::run::View;
use git_handoff::run::document::{self, Change};
use serde_json::{Value, json};

use super::super::table;
use super::{Ending, Failure, Output, Repository};

/// List the documents of a run, each at its highest revision
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
}

/// Prints one line a document.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let view = super::view(repository, &arguments.run)?;
    let documents = document::list(&view);
    if output.json {
        output.value(&value(&view));
        return Ok(Ending::Done);
    }
    let row = |change: &Change| {
        let revision = &change.revision;
        vec![
            change.name.to_string(),
            format!("revision {}", revision.number),
            revision.is(),
            table::size(revision.product.size),
            change.at.to_string(),
            revision.author.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = documents.iter().map(row).collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

/// Returns the documents of a run as `doc list --json` has them.
pub(crate) fn value(view: &View) -> Value {
    let documents: Vec<Value> = document::list(view).iter().map(super::value).collect();
    json!({ "schema": "git-handoff.documents/1", "run": view.run, "documents": documents })
}
