//! `git handoff prove`

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Write a proof of a product, or of a run's continuation, for use without the repository
///
/// Prints one JSON object for `git handoff verify --proof`. The run must be sealed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// RUN/ITEM, RUN/ITEM:patch, RUN/ITEM:outputs/PATH, or RUN with --since
    #[arg(value_name = "RUN/ITEM:WHAT")]
    what: String,
    /// Prove that the entries up to this one are still the beginning of the run
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

/// Prints the proof.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    output.value(&repository.prove(&arguments.what, arguments.since)?);
    Ok(Ending::Done)
}
