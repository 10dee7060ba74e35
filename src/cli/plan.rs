//! `git handoff plan`

mod new;

use git_handoff::repository::Environment;

use super::{Ending, Failure, Output};

/// Write plans
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(new::Arguments),
}

/// Writes a plan.
pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result<Ending, Failure> {
    match &arguments.command {
        Command::New(arguments) => new::run(arguments, environment, output),
    }
}
