//! `git handoff anchor`

mod add;
mod check;
mod list;
mod push;

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Compare runs with records outside the repository
///
/// An anchor stores the roots of runs in a place where writers of this repository cannot change
/// them. Only your own configuration names anchors; `git handoff verify` asks each of them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Add(add::Arguments),
    List(list::Arguments),
    Push(push::Arguments),
    Check(check::Arguments),
}

/// Runs a subcommand of `anchor`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Add(arguments) => add::run(arguments, repository, output),
        Command::List(_) => list::run(repository, output),
        Command::Push(arguments) => push::run(arguments, repository, output),
        Command::Check(arguments) => check::run(arguments, repository, output),
    }
}
