//! `git handoff doc`

mod diff;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod put;

use clap::Subcommand;
use git_handoff::repository::Repository;
use git_handoff::run::query::{Target, VerifiedRun};

use super::{Ending, Failure, Output, Property, commands, gate};

/// Write and read documents of a run
///
/// A document is a file on a run with a history of revisions, each with an author. Items can
/// produce documents, and keys with the role `document` can write them.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

commands! {
    Put(put::Arguments) => put::run, [Offline: |it| it.offline.offline];
    #[command(visible_alias = "cat")]
    Get(get::Arguments) => get::run;
    List(list::Arguments) => list::run, [Pages];
    Log(log::Arguments) => log::run, [Pages];
    Diff(diff::Arguments) => diff::run, [Pages];
}

/// Runs a subcommand of `doc`.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    arguments.command.run(repository, output)
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
