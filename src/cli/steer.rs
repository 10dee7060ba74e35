//! `git handoff cancel`, `retry`, `close` and `abandon`: the operator's decisions about a run.

use git_handoff::model::hints;
use git_handoff::repository::Repository;
use git_handoff::run::operate::steer::Steered;
use git_handoff::run::query::{Target, target};

use super::remote_read::Offline;
use super::{Ending, Failure, Output};

/// Cancel a run, or one item and everything that depends on it
///
/// Cancelling a whole run seals it. The driver ends running items.
#[derive(clap::Args)]
pub(crate) struct Cancel {
    /// The run, or RUN/ITEM
    #[arg(value_name = "RUN[/ITEM]")]
    target: String,
    /// The reason
    #[arg(long, default_value = "cancelled by the operator")]
    reason: String,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Retry an item that failed, was skipped or was cancelled
///
/// Items that were skipped because of it wait for it again.
#[derive(clap::Args)]
pub(crate) struct Retry {
    /// The item
    #[arg(value_name = "RUN/ITEM")]
    target: String,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Seal a settled run as it is
#[derive(clap::Args)]
pub(crate) struct Close {
    /// The run
    run: String,
    /// The reason
    #[arg(long, default_value = "closed by the operator")]
    reason: String,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Close and seal an unneeded run, whatever is unfinished
///
/// Cancels waiting and running items. The run records that it was abandoned, and why.
#[derive(clap::Args)]
pub(crate) struct Abandon {
    /// The run
    run: String,
    /// The reason
    #[arg(short, long, value_name = "TEXT", default_value = "abandoned")]
    message: String,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Abandons a run.
pub(crate) fn abandon(arguments: &Abandon, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    print_end(&repository.abandon(&arguments.run, &arguments.message)?, output);
    Ok(Ending::Done)
}

/// Cancels a run or item.
pub(crate) fn cancel(arguments: &Cancel, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    print_end(&repository.cancel(&arguments.target, &arguments.reason)?, output);
    Ok(Ending::Done)
}

/// Retries an item.
pub(crate) fn retry(arguments: &Retry, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let steered = repository.retry(&arguments.target)?;
    if !output.answers(&steered) {
        output.line(&format!("{} will be tried again", arguments.target));
    }
    tell_of_older(&arguments.target, repository, output)?;
    if !output.json {
        output.hint(&hints::run(&steered.run));
    }
    Ok(Ending::Done)
}

/// Warns that an item continues from the run's base although its files have changed since.
fn tell_of_older(target: &str, repository: &Repository, output: &mut Output) -> Result<(), Failure> {
    let (target, rest) = Target::with_rest(&repository.store, target)?;
    let view = target.view(&repository.store)?;
    let Some(rest) = rest else { return Ok(()) };
    let item = view.state.graph.item(target::item(&view, rest)?);
    let older = repository.older_in_base(&view.state, item)?;
    if !older.is_empty() {
        let (id, base) = (item.id.as_str(), view.state.submitted.base.to_string());
        output.warn(&format!(
            "item {id:?} runs {} as the base {} of the run has it, without later changes; for those, submit the plan with another id",
            older.join(", "),
            &base[..7]
        ));
    }
    Ok(())
}

/// Closes and seals a run.
pub(crate) fn close(arguments: &Close, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    print_end(&repository.close(&arguments.run, &arguments.reason)?, output);
    Ok(Ending::Done)
}

/// Prints the record, and what remains if our key may end the run but not seal it.
fn print_end(steered: &Steered, output: &mut Output) {
    print(steered, output);
    if let Some(key) = &steered.cannot_seal {
        let run = &steered.run;
        output.warn(&format!("{run} has ended and is not sealed: the key {key} does not have the role seal"));
        output.hint(&hints::admit_to_seal(run, key));
    }
}

fn print(steered: &Steered, output: &mut Output) {
    if output.json {
        return output.value(steered);
    }
    let Steered { run, entries, .. } = steered;
    if *entries == 0 && steered.sealed {
        return output.line(&format!("{run}: was sealed before"));
    }
    let sealed = if steered.sealed { ", sealed" } else { "" };
    let stopped = steered.stopped.as_ref().filter(|_| steered.sealed);
    let partial = stopped.map(|stopped| format!(", PARTIAL: {stopped}")).unwrap_or_default();
    output.line(&format!("{run}: {entries} entr{}{sealed}{partial}", if *entries == 1 { "y" } else { "ies" }));
}
