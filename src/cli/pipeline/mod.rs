//! `git handoff pipeline`

mod add;
mod list;
mod show;
mod validate;

use std::path::Path;

use git_handoff::model::pipeline::MAX_BYTES;
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, context};

/// Register pipelines: sequences of blocks that items run in place of the default steps
///
/// A pipeline is a JSON file with the blocks `agent`, `script` and `capture`. An item names it in
/// `inputs.pipeline`; its bytes are sealed with the run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Validate(validate::Arguments),
    #[command(visible_alias = "register")]
    Add(add::Arguments),
    List(list::Arguments),
    Show(show::Arguments),
}

impl Arguments {
    /// Returns true if the subcommand works outside a repository.
    pub(crate) fn works_anywhere(&self) -> bool {
        matches!(self.command, Command::Validate(_))
    }

    /// Returns true if the output may be longer than a screen.
    pub(crate) fn is_read_in_pages(&self) -> bool {
        matches!(self.command, Command::List(_) | Command::Show(_))
    }
}

/// Runs a subcommand of `pipeline`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Validate(arguments) => validate::run(arguments, output),
        Command::Add(arguments) => add::run(arguments, repository, output),
        Command::List(arguments) => Ok(list::run(arguments, repository, output)),
        Command::Show(arguments) => show::run(arguments, repository, output),
    }
}

/// Reads a pipeline; one byte more than the maximum, so that a larger file is noticed.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    context::read_file(path, MAX_BYTES + 1)
}
