//! `git handoff adopt-run`

use git_handoff::model::hints;
use git_handoff::model::name::RunId;
use git_handoff::repository::Repository;

use super::{Ending, Failure, Output, validate};

/// Continue a run whose owners cannot go on, as a new run of yours
///
/// Use this if the only owner lost the key, or a revoked key may still write to the run. The new
/// run has the same plan, base and artifacts. Items that were done and green are recorded as done
/// with the same products, and do not run again. The new run seals the signed entries of the old
/// one as evidence. Approvals must be given again. You must know every key that signed the old run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run, local or fetched
    #[arg(value_name = "[REMOTE/]RUN")]
    run: String,
    /// The id of the new run
    #[arg(long, value_name = "RUN")]
    id: String,
}

/// Continues the run, and prints the remaining items.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let id = RunId::parse(&arguments.id).map_err(|why| Failure::usage(format!("--id: {why}")))?;
    let adopted = match repository.adopt_run(&arguments.run, &id)? {
        Ok(adopted) => adopted,
        Err(problems) => return Ok(validate::report(output, Err(&problems))),
    };
    adopted.warnings.iter().for_each(|warning| output.warn(warning));
    if output.answers(&adopted) {
        return Ok(Ending::Done);
    }
    let (count, left) = (adopted.taken.len(), adopted.left);
    let items = if count == 1 { "item" } else { "items" };
    let already = if adopted.created { "" } else { " already" };
    let (run, old) = (&adopted.run, &adopted.continues);
    output.line(&format!("{run} continues {old}{already}: {count} {items} taken over, {left} left"));
    output.hint(&hints::run(&adopted.run));
    Ok(Ending::Done)
}
