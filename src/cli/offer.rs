//! `git handoff offer`

use git_handoff::model::packet::Unclean;
use git_handoff::model::quote::quoted;
use git_handoff::thread::offer::{self as stage, AtRemotes, Terms};
use serde_json::Value;

use super::thread::ThreadTarget;
use super::{Ending, Failure, Output};
use git_handoff::repository::Repository;

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
    let descriptor = offer(repository, &arguments.target, terms, output)?;
    output.value(&descriptor);
    Ok(Ending::Done)
}

/// Returns the descriptor of a checkpoint.
pub(crate) fn offer(
    repository: &Repository,
    target: &str,
    terms: Terms,
    output: &mut Output,
) -> Result<Value, Failure> {
    let target = ThreadTarget::find(&repository.store, target)?;
    // Whom it rests on is for those to judge who are offered it.
    let source = target.vouched(repository, true, output)?;
    if terms.to_agent.as_deref().is_some_and(|to| to.is_empty() || to.len() > 256 || to.chars().any(char::is_control)) {
        return Err(Failure::usage("an agent's name has 1 to 256 bytes and no control characters".into()));
    }
    let descriptor = stage::offer(&repository.writer()?, &source, target.checkpoint.as_ref(), terms)?;
    let push = |remote: &str| format!("git handoff push {} {}", quoted(remote), quoted(target.thread.as_str()));
    match stage::at_remotes(&repository.store, &repository.reach(), &source, target.checkpoint.as_ref())? {
        AtRemotes::Held => {}
        AtRemotes::Nowhere(remote) => {
            output.warn(&format!("{} is not at {remote:?} yet: nobody can adopt it from there", target.thread));
            output.hint(&push(&remote));
        }
        AtRemotes::Unknown(remote) => {
            output.warn(&format!("{remote:?} could not be asked whether it holds {}", target.thread));
            output.hint(&push(&remote));
        }
    }
    Ok(descriptor)
}

/// Reads `90m`, `48h`, `7d`.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    let unit = match text.chars().last() {
        Some('s') => 1_000,
        Some('m') => 60_000,
        Some('h') => 3_600_000,
        Some('d') => 86_400_000,
        _ => return Err("a time is a number and s, m, h or d, like 48h".to_owned()),
    };
    let number = text[..text.len() - 1].parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let digits = text.bytes().rev().skip(1).all(|byte| byte.is_ascii_digit());
    let number = number.filter(|millis| digits && (1..=3_650 * 86_400_000).contains(millis));
    number.ok_or_else(|| "at least 1s, and at most 3650d".to_owned())
}
