//! `git handoff resume`

use git_handoff::thread::steps;

use super::cat::Stdout;
use super::context::Context;
use super::{Ending, Failure, Output, thread};

/// Print the latest state of a thread, byte for byte, to go on from
///
/// That it was handed out is recorded, with the resume token of its packet; `thread cat` only looks.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
    /// Put the saved working tree back as well; refused if it would touch local changes
    #[arg(long)]
    checkout: bool,
}

/// Records, then prints the bytes.
pub(crate) fn run(arguments: &Arguments, context: &Context, output: &mut Output) -> Result<Ending, Failure> {
    let id = thread::id(&arguments.thread)?;
    let (checkpoint, _) = steps::resume(&context.writer()?, &id, arguments.checkout)?;
    context.store.copy_blob(checkpoint.content.state.oid, &mut Stdout { output })?;
    Ok(Ending::Done)
}
