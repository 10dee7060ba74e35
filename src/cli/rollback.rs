//! `git handoff rollback`

use git_handoff::repository::Repository;
use git_handoff::thread::target::ThreadTarget;

use super::{Ending, Failure, Output};

/// Make an earlier checkpoint of a thread its latest
///
/// Appends the earlier state as a new checkpoint; removes nothing. Prints one JSON object.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The checkpoint to go back to
    #[arg(value_name = "THREAD:CHECKPOINT")]
    target: String,
    /// Go back even if the thread depends on an untrusted key
    #[arg(long)]
    accept_untrusted: bool,
}

/// Appends and prints the checkpoint.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = ThreadTarget::find(&repository.store, &arguments.target)?;
    let checkpoint = target.checkpoint.ok_or_else(|| {
        Failure::usage("say which checkpoint: THREAD:CHECKPOINT, as `git handoff thread log` shows them".into())
    })?;
    let accept = arguments.accept_untrusted;
    let made = repository.rollback(target.thread, &checkpoint, accept, &mut |text| output.warn(text))?;
    output.value(&made);
    Ok(Ending::Done)
}
