//! `git handoff resume`

use git_handoff::model::packet::Unclean;
use git_handoff::repository::Repository;
use git_handoff::thread::operations::GoingOn;
use git_handoff::thread::steps;
use git_handoff::thread::target::id;

use super::cat::Stdout;
use super::{Ending, Failure, Output};

/// Print the latest state of a thread, byte for byte, to go on from
///
/// That it was handed out is recorded, with the resume token of its packet; `thread cat` only looks. The packet is checked first,
/// as `check` does; one that is not clean, or whose token was used before, ends this with 3 or 4 and its report.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
    /// Put the saved working tree back as well; refused if it would touch local changes
    #[arg(long)]
    checkout: bool,
    /// Resume although the attached packet is as bad as this, operational or critical, which is recorded
    #[arg(long, value_name = "CLASS")]
    accept: Option<Unclean>,
    /// Resume although the thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Records, then prints the bytes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let thread = id(&arguments.thread)?;
    let how = GoingOn {
        checkout: arguments.checkout,
        accept: arguments.accept,
        accept_untrusted: arguments.accept_untrusted,
        at_most: None,
    };
    let checkpoint = repository.resume(thread, how, &mut |text| output.warn(text))?;
    steps::hand_out(&repository.store, &checkpoint, checkpoint.content.state, &mut Stdout { output })?;
    Ok(Ending::Done)
}
