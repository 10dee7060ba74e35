//! `git handoff log`

use git_handoff::model::entry::Event;
use git_handoff::repository::Repository;
use git_handoff::run::Target;

use super::{Ending, Failure, Output, progress, table};

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
            output.value(&link.to_json());
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
