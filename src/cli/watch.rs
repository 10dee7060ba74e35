//! `git handoff watch`

use git_handoff::repository::Repository;
use git_handoff::run::Target;
use git_handoff::run::follow::Follower;

use super::progress::Display;
use super::{Ending, Failure, Output, status};

/// Watch a run that another process drives, until it settles
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
}

/// Shows progress, and at the end the table of items. Ends with the exit code of `run`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = Target::find(&repository.store, &arguments.run)?;
    let (mut following, mut view) = Follower::begin(&repository.store, target)?;
    let mut display = Display::new(&view.state, repository.environment.clock, None, None, output.stderr_color);
    while let Some(next) = following.next(&view)? {
        next.links.iter().skip(view.links.len()).for_each(|link| display.recorded(link, &next.state));
        view = next;
    }
    display.end();
    if output.json {
        output.value(&git_handoff::run::list::Status::of(&view));
    } else {
        status::print_table(&view, output);
    }
    Ok(if view.state.outcomes().is_green() { Ending::Done } else { Ending::NotAllDone })
}
