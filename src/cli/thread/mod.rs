//! `git handoff thread`

mod cat;
mod diff;
pub(crate) mod list;
mod log;
mod show;
mod verify;

use clap::Subcommand;
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, Property, commands};

pub(crate) use verify::print;

/// Show and verify threads
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

commands! {
    List(list::Arguments) => list::run, [Pages];
    Show(show::Arguments) => show::run, [Pages];
    Log(log::Arguments) => log::run, [Pages];
    Diff(diff::Arguments) => diff::run, [Pages];
    Cat(cat::Arguments) => cat::run;
    Verify(verify::Arguments) => verify::run, [Pages];
}

/// Runs a subcommand of `thread`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    arguments.command.run(repository, output)
}
