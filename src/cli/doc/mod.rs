//! `git handoff doc`

mod diff;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod put;

use git_handoff::repository::Repository;
use git_handoff::run::query::{Target, VerifiedRun};

use super::{Ending, Failure, Output, gate};

/// Write and read documents of a run
///
/// A document is a file on a run with a history of revisions, each with an author. Items can
/// produce documents, and keys with the role `document` can write them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Put(put::Arguments),
    #[command(visible_alias = "cat")]
    Get(get::Arguments),
    List(list::Arguments),
    Log(log::Arguments),
    Diff(diff::Arguments),
}

impl Arguments {
    /// Returns true if the output may be longer than a screen.
    pub(crate) fn is_read_in_pages(&self) -> bool {
        matches!(self.command, Command::List(_) | Command::Log(_) | Command::Diff(_))
    }

    /// Returns true if the remote of the run is not to be read.
    pub(crate) fn is_offline(&self) -> bool {
        matches!(&self.command, Command::Put(arguments) if arguments.offline.offline)
    }
}

/// Runs a subcommand of `doc`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::Put(arguments) => put::run(arguments, repository, output),
        Command::Get(arguments) => get::run(arguments, repository, output),
        Command::List(arguments) => list::run(arguments, repository, output),
        Command::Log(arguments) => log::run(arguments, repository, output),
        Command::Diff(arguments) => diff::run(arguments, repository, output),
    }
}

/// Verifies a run, ours or a fetched one.
pub(crate) fn vetted(
    repository: &Repository,
    run: &str,
    terms: gate::Terms,
    output: &mut Output,
) -> Result<VerifiedRun, Failure> {
    gate::vetted(&Target::find(&repository.store, run)?, terms, repository, output)
}
