//! `git handoff fork`

use git_handoff::thread::steps;

use super::thread::{self, ThreadTarget};
use super::{Ending, Failure, Output};
use git_handoff::repository::Repository;

/// Begin a new thread with a checkpoint of another
///
/// The other may be fetched and belong to somebody else; the new one is yours. Prints one JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    source: String,
    /// The new thread
    #[arg(long = "as", value_name = "NAME")]
    new: String,
    /// Fork although the thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Forks, and prints the checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let new = thread::id(&arguments.new)?;
    let target = ThreadTarget::find(&repository.store, &arguments.source)?;
    let source = target.vouched(repository, arguments.accept_untrusted, output)?;
    let made = steps::fork(&repository.writer()?, &source, target.checkpoint.as_ref(), &new)?;
    thread::print_made(&made, "fork", output);
    Ok(Ending::Done)
}
