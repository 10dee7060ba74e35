//! `git handoff thread cat`

use git_handoff::thread::steps;

use super::super::cat::Stdout;
use super::target::ThreadTarget;
use super::{Context, Ending, Failure, Output};

/// Print the state of a checkpoint, byte for byte
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    target: String,
    /// Print the packet instead
    #[arg(long)]
    packet: bool,
}

/// Prints the bytes, if they are those that were saved.
pub(super) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let target = ThreadTarget::find(&context.store, &arguments.target)?;
    let sound = target.sound(&context.store)?;
    let checkpoint = steps::find(&sound, target.checkpoint.as_ref())?;
    let product = if arguments.packet { checkpoint.content.packet } else { Some(checkpoint.content.state) };
    let product = product.ok_or_else(|| {
        Failure::refused("no-packet", format!("no packet is attached to {}:{}", target.thread, checkpoint.id))
    })?;
    steps::intact(&context.store, checkpoint)?;
    context.store.copy_blob(product.oid, &mut Stdout { output })?;
    Ok(Ending::Done)
}
