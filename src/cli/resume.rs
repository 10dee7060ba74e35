//! `git handoff resume`

use git_handoff::model::packet::Unclean;
use git_handoff::repository::Repository;
use git_handoff::thread::operations::GoingOn;
use git_handoff::thread::steps;
use git_handoff::thread::target::id;

use super::cat::Stdout;
use super::{Ending, Failure, Output};

/// Print the latest state of a thread to resume from, byte for byte
///
/// Records the resumption, with the resume token of the packet; `thread cat` only prints. The
/// packet is checked first: if it is not clean or its token was used, the exit code is 3 or 4 and
/// its report is printed; see `check`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread
    thread: String,
    /// Restore the saved working tree as well; refused if it would change local files
    #[arg(long)]
    checkout: bool,
    /// Accept a packet of this classification, operational or critical, and record that
    #[arg(long, value_name = "CLASS")]
    accept: Option<Unclean>,
    /// Resume even if the thread depends on an untrusted key
    #[arg(long)]
    accept_untrusted: bool,
}

/// Records the resumption, then prints the bytes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let thread = id(&arguments.thread)?;
    let how = GoingOn {
        checkout: arguments.checkout,
        accept: arguments.accept,
        accept_untrusted: arguments.accept_untrusted,
    };
    let checkpoint = repository.resume(thread, how, &mut |text| output.warn(text))?;
    steps::hand_out(&repository.store, &checkpoint, checkpoint.content().state, &mut Stdout { output })?;
    Ok(Ending::Done)
}
