//! `git handoff anchor`

mod add;
mod check;
mod list;
mod push;

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Hold runs against places outside the repository
///
/// An anchor holds the roots of runs where whoever can rewrite this repository cannot. Your own configuration alone says
/// which there are; `git handoff verify` asks each of them.
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

/// Runs the command behind `anchor`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Add(arguments) => add::run(arguments, repository, output),
        Command::List(_) => list::run(repository, output),
        Command::Push(arguments) => push::run(arguments, repository, output),
        Command::Check(arguments) => check::run(arguments, repository, output),
    }
}
