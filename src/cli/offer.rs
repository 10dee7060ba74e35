//! `git handoff offer`

use git_handoff::model::hints;
use git_handoff::model::packet::Unclean;
use git_handoff::repository::Repository;
use git_handoff::thread::offer::{Terms, milliseconds};

use super::{Ending, Failure, Output};

/// Offer a checkpoint to another agent: print its signed descriptor
///
/// Whoever gets the descriptor adopts exactly these bytes, or nothing. It can be adopted once in a repository. An attached
/// packet is checked first, as `check` does; one that is not clean ends this with 3 or 4 and its report.
#[derive(clap::Args)]
#[command(alias = "handoff_checkpoint")]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    target: String,
    /// Only for this agent, as it calls itself with `adopt --me`
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// How long the offer stands: a number and s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "48h", value_parser = milliseconds)]
    expires: u64,
    /// Offer although the attached packet is as bad as this, operational or critical; the descriptor says so
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
