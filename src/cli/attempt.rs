//! Writes the spec of an attempt, and executes one, for `git-handoff-attempt`.

use std::path::PathBuf;

use git_handoff::engine::execute;
use git_handoff::engine::operations::DriveOptions;
use git_handoff::model::name::{ItemId, RunId};
use git_handoff::repository::Environment;

use super::{Ending, Failure, Output, context, interrupt};

/// Execute an attempt without a driver
#[derive(clap::Subcommand)]
pub(crate) enum Arguments {
    /// Execute the attempt that a spec describes, and print its result as JSON
    Run {
        /// The spec, in a file with the mode 0600
        #[arg(value_name = "SPEC.json")]
        spec: PathBuf,
    },
    /// Write the spec of the next attempt of an item into a new file
    Spec {
        /// The run
        #[arg(value_name = "RUN", value_parser = RunId::parse)]
        run: RunId,
        /// The item, whose needs must be met
        #[arg(value_name = "ITEM", value_parser = ItemId::parse)]
        item: ItemId,
        /// The new file
        #[arg(value_name = "SPEC.json")]
        spec: PathBuf,
    },
}

/// Runs one of the two.
pub(crate) fn run(arguments: &Arguments, environment: Environment, output: &mut Output) -> Result<Ending, Failure> {
    match arguments {
        Arguments::Run { spec } => {
            let spec = execute::read(spec)?;
            let (runtime, interrupt) = interrupt::runtime()?;
            output.value(&runtime.block_on(execute::execute(spec, environment, interrupt))?);
        }
        Arguments::Spec { run, item, spec } => {
            let repository = context::open(environment, false)?;
            let prepared = repository.drivable(run, &DriveOptions::default())?.spec(item)?;
            execute::write(&prepared, spec)?;
        }
    }
    Ok(Ending::Done)
}
