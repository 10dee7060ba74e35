//! `git handoff offer`

use git_handoff::model::hints;
use git_handoff::model::packet::Unclean;
use git_handoff::repository::Repository;
use git_handoff::thread::offer::{Terms, milliseconds};

use super::{Ending, Failure, Output};

/// Offer a checkpoint to another agent: print a signed descriptor
///
/// The recipient adopts exactly these bytes, or nothing, and only once in a repository. An attached
/// packet that is not clean ends this with exit code 3 or 4 and its report; see `check`.
#[derive(clap::Args)]
#[command(alias = "handoff_checkpoint")]
pub(crate) struct Arguments {
    /// THREAD, or THREAD:CHECKPOINT
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    target: String,
    /// Offer only to this agent, by its name in `adopt --me`
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// The lifetime of the offer: a number and s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "48h", value_parser = milliseconds)]
    expires: u64,
    /// Accept a packet of this classification, operational or critical, and record that in the
    /// descriptor
    #[arg(long, value_name = "CLASS")]
    accept: Option<Unclean>,
}

/// Prints the descriptor.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let terms = Terms {
        to_agent: arguments.to.clone(),
        expires: repository.environment.clock.now().plus_millis(arguments.expires),
        accept: arguments.accept,
    };
    let offered = repository.offer(&arguments.target, terms, &mut |text| output.warn(text))?;
    if let Some((caution, remote)) = offered.caution() {
        output.warn(&caution);
        output.hint(&hints::push_thread(remote, &offered.thread));
    }
    output.value(&offered.descriptor);
    Ok(Ending::Done)
}
