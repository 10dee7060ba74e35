//! `git handoff thread diff`

use super::{Ending, Failure, Output, Repository};

/// Show how a checkpoint differs from another, or from the one before it
///
/// What is compared is all that they hold: the state, the packet and the working tree.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    old: String,
    /// The other checkpoint, of any thread
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    new: Option<String>,
    /// Compare although a thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Prints a patch from the first to the second; of one alone, from the one before it.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let names = (arguments.old.as_str(), arguments.new.as_deref());
    let call = repository.thread_diff(names, arguments.accept_untrusted, &mut |text| output.warn(text))?;
    call.stream(&mut |chunk| {
        output.bytes(chunk);
        Ok(())
    })?;
    Ok(Ending::Done)
}
