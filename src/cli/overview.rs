//! `git handoff`, without a command

use git_handoff::apply::threeway::Underway;
use git_handoff::model::hints::{self, Hint};
use git_handoff::model::outcomes::{CLAIMED, NOTHING};
use git_handoff::repository::Repository;
use git_handoff::run::query::list::RunSummary;
use git_handoff::thread::overview::Overview;
use git_handoff::upkeep::setup;

use super::status::AWAITED;
use super::table::{self, Cell};
use super::thread::list;
use super::{Ending, Failure, Output, runs};

/// Prints the state of the repository's runs and threads, and the next command.
pub(crate) fn run(repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let overview = repository.overview()?;
    if output.answers(&overview) {
        return Ok(Ending::Done);
    }
    section(AWAITED, &overview.waiting.iter().map(|one| vec![one.target.as_str().into()]).collect::<Vec<_>>(), output);
    let underway = Underway::read(&repository.store)?;
    let conflicts = underway.as_ref().map(|one| vec![one.run().as_str().into(), "conflicts to resolve".into()]);
    section("being applied", &Vec::from_iter(conflicts), output);
    section("open", &rows(&overview.open), output);
    section("not all done and green", &rows(&overview.not_green), output);
    let threads = overview.threads.iter().map(list::row).map(|row| row.into_iter().map(Cell::from).collect());
    section("threads", &threads.collect::<Vec<_>>(), output);
    output.line(&format_unlisted(&overview));
    output.hint(&underway.map_or_else(|| next(&overview, repository), |_| hints::resolve()));
    Ok(Ending::Done)
}

/// Formats the number of runs that are not listed.
fn format_unlisted(overview: &Overview) -> String {
    let listed = overview.open.len() + overview.not_green.len() + overview.waiting.len();
    let mut parts = Vec::new();
    if overview.green > 0 || listed > 0 {
        let empty = match overview.handed_over_nothing {
            0 => String::new(),
            count => format!(", {count} with an item that has {NOTHING}"),
        };
        let claimed = match overview.claimed {
            0 => String::new(),
            count => format!(", {count} with items that are only {CLAIMED}"),
        };
        parts.push(format!(
            "{} sealed, done and green by what they record{claimed}{empty}",
            table::many(overview.green, "run")
        ));
    }
    let others = [(overview.archived, "archived"), (overview.fetched, "fetched")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, how)| format!("{} {how} and not looked at", table::many(count, "run"))));
    if parts.is_empty() { "there are no runs here yet".to_owned() } else { parts.join("; ") }
}

fn rows(summaries: &[RunSummary]) -> Vec<Vec<Cell>> {
    summaries.iter().map(runs::row).collect()
}

fn section(title: &str, rows: &[Vec<Cell>], output: &mut Output) {
    if rows.is_empty() {
        return;
    }
    output.line(title);
    // An empty column indents the others.
    table::print(
        &rows
            .iter()
            .map(|row| std::iter::once(Cell::default()).chain(row.iter().cloned()).collect())
            .collect::<Vec<_>>(),
        output,
    );
}

/// Returns the next command: first what only the user can do.
fn next(overview: &Overview, repository: &Repository) -> Hint {
    if !overview.waiting.is_empty() {
        return hints::awaiting();
    }
    let stopped = |run: &&RunSummary| run.stopped.is_some() && !run.counts.contains_key("failed");
    if let Some(run) = overview.open.iter().find(stopped) {
        return hints::explain_or_close(&run.run);
    }
    let failing = overview.open.iter().find(|run| run.counts.contains_key("failed"));
    match (failing, overview.open.first(), overview.not_green.first()) {
        (None, None, Some(run)) if stopped(&run) => hints::explain(&run.run),
        (Some(run), ..) => hints::status_blocked(&run.run),
        (None, None, Some(run)) => hints::show_or_archive(&run.run),
        (None, Some(_), _) => hints::run_all(),
        (None, None, None) if overview.green > 0 => hints::verify_all(),
        (None, None, None) if overview.archived > 0 => hints::archived_runs(),
        (None, None, None) if overview.fetched > 0 => hints::fetched_runs(),
        (None, None, None) if setup::is_unconfigured(&repository.config) => hints::configure(),
        (None, None, None) => hints::first_plan(),
    }
}
