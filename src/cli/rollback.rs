//! `git handoff rollback`

use git_handoff::thread::steps;

use super::thread::{self, ThreadTarget};
use super::{Ending, Failure, Output};
use git_handoff::repository::Repository;

/// Make an earlier checkpoint of a thread its latest again
///
/// Nothing is removed: the earlier state is appended as a new checkpoint. Prints one JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The checkpoint to go back to
    #[arg(value_name = "THREAD:CHECKPOINT")]
    target: String,
    /// Go back although the thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Appends, and prints the checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = ThreadTarget::find(&repository.store, &arguments.target)?;
    let checkpoint = target.checkpoint.ok_or_else(|| {
        Failure::usage("say which checkpoint: THREAD:CHECKPOINT, as `git handoff thread log` shows them".into())
    })?;
    let own = ThreadTarget::own(repository, target.thread)?;
    let vouched = own.vouched(repository, arguments.accept_untrusted, output)?;
    let made = steps::rollback(&repository.writer()?, vouched, &checkpoint)?;
    thread::print_made(&made, "rollback", output);
    Ok(Ending::Done)
}
