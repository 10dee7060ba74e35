//! `git handoff runs`

use git_handoff::model::hints;
use git_handoff::model::outcomes::{CLAIMED, NOTHING};
use git_handoff::repository::Repository;
use git_handoff::run::query::list::{Besides, RunSummary};

use super::table::{self, Cell};
use super::{Ending, Failure, Output, shade, status};

/// List the runs of this repository, newest first
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// List fetched runs as well, as REMOTE/RUN
    #[arg(short, long)]
    all: bool,
    /// List archived runs as well
    #[arg(long)]
    archived: bool,
}

/// Prints one line for each run. An unreadable run does not hide the others.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let answer = repository.runs(Besides { fetched: arguments.all, archived: arguments.archived })?;
    repository.unreadable_archives()?.iter().for_each(|why| output.warn(&format!("runs are not listed: {why}")));
    if !output.answers(&answer) {
        let rows: Vec<_> = answer.runs.iter().map(row).collect();
        table::print(&rows, output);
        let archived = if arguments.archived { 0 } else { repository.count_archived()? };
        if archived > 0 {
            output.note(&format!("{} archived and not listed", table::many(archived, "run")));
            output.hint(&hints::archived_runs());
        } else if rows.is_empty() {
            nothing(arguments, repository, output)?;
        }
    }
    Ok(Ending::Done)
}

/// Reports that there are no runs, and where others are.
fn nothing(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<(), Failure> {
    let fetched = if arguments.all { 0 } else { repository.count_fetched()? };
    if fetched == 0 {
        output.note("there are no runs here");
    } else {
        output.note(&format!("no run was submitted here; {} fetched and not listed", table::many(fetched, "run")));
        output.hint(&hints::fetched_runs());
    }
    Ok(())
}

/// Formats a run.
pub(crate) fn row(run: &RunSummary) -> Vec<Cell> {
    let summary = run.error.as_deref().map_or_else(|| counts(run), Cell::from);
    let name = run.remote.as_ref().map_or_else(|| run.run.to_string(), |remote| format!("{remote}/{}", run.run));
    let queue = run.queue.as_deref().unwrap_or("?");
    let date = run.submitted_at.map_or_else(|| "?".to_owned(), table::minute);
    let author = run.author.as_deref().unwrap_or("?");
    let state = Cell::default().and(run.state.as_str(), shade::for_word(&run.state));
    let mut row = vec![name.into(), queue.into(), state, date.into(), author.into(), summary];
    let goal = run.goal.iter().flat_map(|goal| goal.lines()).map(str::trim).find(|line| !line.is_empty());
    row.extend(goal.map(Cell::from));
    row
}

/// Returns how many items stand how, and what rules had the run say.
fn counts(run: &RunSummary) -> Cell {
    let awaits = run.awaits_approval;
    let ready = |status: &str, n: u64| if status == "ready" { n.saturating_sub(awaits) } else { n };
    let counts = run.counts.iter().map(|(status, n)| (ready(status, *n), status.as_str()));
    let counts = counts.chain([(awaits, status::AWAITED)]).filter(|(n, _)| *n > 0);
    let counts = counts.map(|(n, status)| (format!("{n} {status}"), shade::for_word(status)));
    let empty = (run.handed_over_nothing > 0).then(|| format!("{} with {NOTHING}", run.handed_over_nothing));
    let claimed = (run.claimed > 0).then(|| format!("{} {}", run.claimed, CLAIMED));
    let empty = claimed.into_iter().chain(empty).map(|words| (words, None));
    let outcomes = run.said.iter().map(|word| (word.clone(), shade::SAID));
    // The reason is for `status`: here it would push the rows apart.
    let silent = run.stopped.iter().filter(|_| run.said.is_empty());
    let stopped = silent.map(|stopped| (format!("rule {} stopped", stopped.rule), shade::SAID));
    let partial = run.stopped.iter().map(|_| (status::PARTIAL.to_owned(), shade::SAID));
    counts
        .chain(outcomes)
        .chain(stopped)
        .chain(empty)
        .chain(partial)
        .enumerate()
        .fold(Cell::default(), |cell, (at, (words, shade))| {
            cell.and(if at == 0 { "" } else { ", " }, None).and(words, shade)
        })
}
