//! `git handoff fork`

use git_handoff::repository::Repository;
use git_handoff::thread::operations::Source;
use git_handoff::thread::target::id;

use super::{Ending, Failure, Output};

/// Create a thread from a checkpoint of another
///
/// The other thread may be fetched and belong to another person; the new one is yours. Prints one
/// JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// THREAD, or THREAD:CHECKPOINT
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    source: String,
    /// The name of the new thread
    #[arg(long = "as", value_name = "NAME")]
    new: String,
    /// Fork even if the thread depends on an untrusted key
    #[arg(long)]
    accept_untrusted: bool,
}

/// Forks, and prints the checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let new = id(&arguments.new)?;
    let whose = if arguments.accept_untrusted { Source::Any } else { Source::VerifiedThread };
    let made = repository.fork(&arguments.source, &new, whose, &mut |text| output.warn(text))?;
    output.value(&made);
    Ok(Ending::Done)
}
