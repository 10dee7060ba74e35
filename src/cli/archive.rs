//! `git handoff archive` and `git handoff unarchive`

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::upkeep::archive::{ArchiveAnswer, Counted, PutAway, Request};

use super::table::{self, Cell};
use super::{Ending, Failure, Output, share, status};

/// Move sealed runs into an archive, so that they need no refs of their own
///
/// The archive is one signed ref, refs/handoff/archives/KEY.ID, with the complete evidence. `push
/// --all` pushes it in place of the runs' refs. `verify`, `show`, `cat`, `whence` and `prove` find
/// archived runs as before, `runs --archived` lists them, and `unarchive` restores their refs.
#[derive(clap::Args)]
pub(crate) struct Archive {
    /// The runs
    #[arg(value_name = "RUN", required_unless_present = "older_than")]
    runs: Vec<String>,
    /// Archive every run sealed before this age: `90d`, `12w`, `6mo`
    #[arg(long, value_name = "AGE", conflicts_with = "runs", value_parser = age)]
    older_than: Option<jiff::Span>,
    /// Only show what would be archived
    #[arg(long, short = 'n')]
    dry_run: bool,
}

/// Restore the refs of archived runs
///
/// The archive is append-only and keeps them as well.
#[derive(clap::Args)]
pub(crate) struct Unarchive {
    /// The runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
}

/// Archives runs, and prints them and the number of saved refs.
pub(crate) fn archive(arguments: &Archive, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let request = arguments.older_than.map_or_else(|| Request::Named(arguments.runs.clone()), Request::OlderThan);
    let answer = repository.archive(&request, arguments.dry_run)?;
    if !output.answers(&answer) {
        print(&answer, output);
    }
    share::warn_unwritten(&repository.unwritten(&answer.ids())?, None, repository, output);
    Ok(if answer.left.is_empty() { Ending::Done } else { Ending::Refused })
}

/// Restores runs, and prints them.
pub(crate) fn unarchive(
    arguments: &Unarchive,
    repository: &Repository,
    output: &mut Output,
) -> Result<Ending, Failure> {
    let answer = repository.unarchive(&arguments.runs)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    answer.runs.iter().for_each(|run| output.line(&format!("unarchived  {run}")));
    output.note(&counted(answer.refs));
    Ok(Ending::Done)
}

fn print(answer: &ArchiveAnswer, output: &mut Output) {
    table::print(&answer.runs.iter().map(row).collect::<Vec<_>>(), output);
    for left in &answer.left {
        output.warn(&format!("{} was left where it is: {}", left.run, left.reason));
    }
    let Some(archive) = answer.archive.as_ref().filter(|_| !answer.runs.is_empty() && !answer.dry_run) else {
        let note = match (answer.runs.is_empty(), answer.left.is_empty()) {
            (true, true) => "no run was sealed that long ago".to_owned(),
            (true, false) => "nothing was archived".to_owned(),
            (false, _) => format!("nothing was archived: --dry-run; {}", counted(answer.refs)),
        };
        return output.note(&note);
    };
    output.note(&format!("{} in {archive}; {}", table::many(answer.runs.len(), "run"), counted(answer.refs)));
    output.hint(&hints::push_archive());
}

/// Formats a run with its result, because the overview no longer shows it.
fn row(put: &PutAway) -> Vec<Cell> {
    let word = if put.already { "archived before" } else { "archived" };
    let sealed = format!("sealed {}", put.sealed_at);
    vec![word.into(), put.run.as_str().into(), sealed.into(), status::came_out(Cell::default(), &put.outcome, 0)]
}

/// Formats the number of refs before and after.
fn counted(refs: Counted) -> String {
    format!("{} below refs/handoff/ before, {} after", table::many(refs.before, "ref"), refs.after)
}

fn age(text: &str) -> Result<jiff::Span, String> {
    let span: jiff::Span = text.parse().map_err(|_| "it must be a time like 90d, 12w or 6mo".to_owned())?;
    if span.is_positive() { Ok(span) } else { Err("it must be more than nothing".to_owned()) }
}
