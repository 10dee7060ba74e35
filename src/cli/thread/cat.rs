//! `git handoff thread cat`

use git_handoff::thread::steps;
use git_handoff::thread::target::ThreadTarget;

use super::super::cat::Stdout;
use super::{Ending, Failure, Output, Repository};

/// Print the exact bytes of a checkpoint's state
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// THREAD, or THREAD:CHECKPOINT
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    target: String,
    /// Print the packet instead
    #[arg(long)]
    packet: bool,
    /// Print even if the thread depends on an untrusted key
    #[arg(long)]
    accept_untrusted: bool,
}

/// Prints the bytes, if they match the record.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let target = ThreadTarget::find(&repository.store, &arguments.target)?;
    let vouched = target.vouched(repository, arguments.accept_untrusted, &mut |text| output.warn(text))?;
    let checkpoint = steps::find(vouched.sound(), target.checkpoint.as_ref())?;
    let product = if arguments.packet { checkpoint.content().packet } else { Some(checkpoint.content().state) };
    let product = product.ok_or_else(|| {
        Failure::refused("no-packet", format!("no packet is attached to {}:{}", target.thread, checkpoint.id))
    })?;
    steps::hand_out(&repository.store, checkpoint, product, &mut Stdout { output })?;
    Ok(Ending::Done)
}
