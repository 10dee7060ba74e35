//! `git handoff prove`

use git_handoff::repository::Repository;

use super::{Ending, Failure, Output};

/// Prove a product, or how a run went on, to somebody who has nothing else
///
/// Prints one JSON object, which `git handoff verify --proof` checks without any repository. The run must be sealed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// RUN/ITEM, RUN/ITEM:patch, RUN/ITEM:outputs/PATH, or RUN with --since
    #[arg(value_name = "RUN/ITEM:WHAT")]
    what: String,
    /// Prove that the entries up to this one still begin the run
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
}

/// Prints the proof.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    output.value(&repository.prove(&arguments.what, arguments.since)?);
    Ok(Ending::Done)
}
