//! `git handoff log`

use git_handoff::ledger::chain::Link;
use git_handoff::model::entry::Event;
use serde_json::{Value, json};

use super::target::Target;
use super::{Ending, Failure, Output, progress, table};
use git_handoff::repository::Repository;

/// Show a run's entries, oldest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
}

/// Prints one line an entry.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let view = Target::find(&repository.store, &arguments.run)?.view(&repository.store)?;
    if output.json {
        for link in &view.links {
            output.value(&value(link)?);
        }
        return Ok(Ending::Done);
    }
    let rows: Vec<Vec<String>> = view
        .links
        .iter()
        .map(|link| {
            let entry = &link.entry;
            let about = match &entry.event {
                Event::RunExtended(e) => format!("{} {}", entry.event.kind(), progress::added(e, &entry.actor)),
                _ => entry.subject(),
            };
            vec![entry.seq.to_string(), link.hash.short(), entry.at.to_string(), entry.actor.clone(), about]
        })
        .collect();
    table::lines(&rows).iter().for_each(|line| output.line(line));
    Ok(Ending::Done)
}

/// Returns an entry as `log --json` has it.
pub(crate) fn value(link: &Link) -> Result<Value, Failure> {
    let mut value: Value =
        serde_json::from_slice(&link.entry.canonical()).map_err(|e| Failure::refused("entry", e.to_string()))?;
    value["hash"] = json!(link.hash);
    value["commit"] = json!(link.commit);
    Ok(value)
}
