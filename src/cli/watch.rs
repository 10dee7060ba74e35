//! `git handoff watch`

use git_handoff::model::printable::Painted;
use git_handoff::repository::Repository;
use git_handoff::run::query::follow::Follower;
use git_handoff::run::query::list::Status;
use git_handoff::run::query::{Target, View};

use super::progress::Display;
use super::remote_read::{self, Rereading};
use super::{Ending, Failure, Output, graph, status};

/// Watch a run that another process drives, until it settles
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// Show the run as a graph, on a terminal drawn again after each change
    #[arg(long)]
    graph: bool,
    #[command(flatten)]
    pub(crate) offline: remote_read::Offline,
}

/// Shows progress, and at the end the table of items or the graph. Ends with the exit code of
/// `run`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = Target::find(&repository.store, &arguments.run)?;
    let first = remote_read::read(&target, repository, output)?;
    let mut remote = Rereading::after(first, target.run.clone(), repository);
    let (following, view) = Follower::begin(&repository.store, target)?;
    let is_graph = arguments.graph && !output.json;
    let view = if is_graph && output.is_terminal() {
        redraw(following, view, &mut remote, output)?
    } else {
        follow(following, view, &mut remote, repository, output)?
    };
    let remote = remote.last;
    if output.json {
        output.value(&Status::from_view(&view).with_remote(remote));
    } else if !is_graph {
        status::print_table(&view, &repository.store, output);
    } else if !output.is_terminal() {
        graph::of_run(&view, output).into_iter().for_each(|line| output.line(line));
    }
    Ok(if view.state.outcomes().is_green() { Ending::Done } else { Ending::NotAllDone })
}

/// Prints a line for each new entry, and returns the run at its end.
fn follow(
    mut following: Follower<'_>,
    mut view: View,
    remote: &mut Rereading<'_>,
    repository: &Repository,
    output: &mut Output,
) -> Result<View, Failure> {
    let mut display = Display::new(&view.state, repository.environment.clock, None, None, output.stderr_color);
    while let Some(next) = following.next(&view, &mut || {
        if remote.turn() {
            output.note(&remote.age().unwrap_or_else(|| "the remote can be read again".to_owned()));
        }
    })? {
        next.links.iter().skip(view.links.len()).for_each(|link| display.recorded(link, &next.state));
        view = next;
    }
    display.end();
    Ok(view)
}

/// Draws the graph again after each change, and returns the run at its end.
fn redraw(
    mut following: Follower<'_>,
    mut view: View,
    remote: &mut Rereading<'_>,
    output: &mut Output,
) -> Result<View, Failure> {
    let mut drawn = 0;
    loop {
        let mut lines: Vec<Painted> = remote.age().into_iter().map(|age| Painted::from(&age)).collect();
        lines.extend(graph::of_run(&view, output));
        // A line above the screen could not be drawn again.
        lines.truncate(output.height());
        output.redraw(drawn, &lines);
        drawn = lines.len();
        match following.next(&view, &mut || _ = remote.turn())? {
            Some(next) => view = next,
            None => break,
        }
    }
    // At the end there is room for all of them.
    let lines = graph::of_run(&view, output);
    output.redraw(drawn, &lines);
    Ok(view)
}
