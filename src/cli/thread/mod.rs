//! `git handoff thread`

mod cat;
mod diff;
pub(crate) mod list;
mod log;
mod show;
mod verify;

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

pub(crate) use verify::print;

/// Show and verify threads
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Log(log::Arguments),
    Diff(diff::Arguments),
    Cat(cat::Arguments),
    Verify(verify::Arguments),
}

impl Arguments {
    /// Returns true if the output may be longer than a screen and is not raw bytes.
    pub(crate) fn is_read_in_pages(&self) -> bool {
        !matches!(self.command, Command::Cat(_))
    }
}

/// Runs a subcommand of `thread`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments, repository, output),
        Command::Show(arguments) => show::run(arguments, repository, output),
        Command::Log(arguments) => log::run(arguments, repository, output),
        Command::Diff(arguments) => diff::run(arguments, repository, output),
        Command::Cat(arguments) => cat::run(arguments, repository, output),
        Command::Verify(arguments) => verify::run(arguments, repository, output),
    }
}
