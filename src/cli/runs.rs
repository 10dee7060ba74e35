//! `git handoff runs`

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::run::list::{Besides, RunSummary};

use super::{Ending, Failure, Output, table};

/// List the runs of this repository
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// List fetched runs as well, each as REMOTE/RUN
    #[arg(short, long)]
    all: bool,
    /// List archived runs as well
    #[arg(long)]
    archived: bool,
}

/// Prints one line a run. A run that cannot be read is listed as such and does not hide the others.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.runs(Besides { fetched: arguments.all, archived: arguments.archived })?;
    if output.json {
        output.value(&answer);
    } else {
        let rows: Vec<_> = answer.runs.iter().map(row).collect();
        table::lines(&rows).iter().for_each(|line| output.line(line));
        let archived = if arguments.archived { 0 } else { repository.count_archived()? };
        if archived > 0 {
            output.note(&format!("{} archived and not listed", table::many(archived, "run")));
            output.hint(&hints::archived_runs());
        } else if rows.is_empty() {
            output.note("there are no runs here");
        }
    }
    Ok(Ending::Done)
}

/// Returns the line about a run.
pub(crate) fn row(run: &RunSummary) -> Vec<String> {
    let (state, said) = if let Some(error) = &run.error {
        ("unreadable", error.clone())
    } else {
        let counts = run.counts.iter().map(|(status, n)| format!("{n} {status}"));
        let said: Vec<String> = counts.chain(run.said.iter().cloned()).collect();
        let state = match (run.archived, run.sealed) {
            (true, _) => "archived",
            (false, true) => "sealed",
            (false, false) => "open",
        };
        (state, said.join(", "))
    };
    let name = run.remote.as_ref().map_or_else(|| run.run.to_string(), |remote| format!("{remote}/{}", run.run));
    vec![name, run.queue.clone().unwrap_or_else(|| "?".into()), state.into(), said]
}
