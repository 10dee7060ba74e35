//! `git handoff thread cat`

use git_handoff::thread::steps;
use git_handoff::thread::target::ThreadTarget;

use super::super::cat::Stdout;
use super::{Ending, Failure, Output, Repository};

/// Print the state of a checkpoint, byte for byte
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    target: String,
    /// Print the packet instead
    #[arg(long)]
    packet: bool,
    /// Print although the thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Prints the bytes, if they are those that were saved.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = ThreadTarget::find(&repository.store, &arguments.target)?;
    let vouched = target.vouched(repository, arguments.accept_untrusted, &mut |text| output.warn(text))?;
    let checkpoint = steps::find(vouched.sound(), target.checkpoint.as_ref())?;
    let product = if arguments.packet { checkpoint.content.packet } else { Some(checkpoint.content.state) };
    let product = product.ok_or_else(|| {
        Failure::refused("no-packet", format!("no packet is attached to {}:{}", target.thread, checkpoint.id))
    })?;
    steps::hand_out(&repository.store, checkpoint, product, &mut Stdout { output })?;
    Ok(Ending::Done)
}
