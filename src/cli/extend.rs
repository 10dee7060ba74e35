//! `git handoff extend`

use std::path::PathBuf;

use git_handoff::model::hints;
use git_handoff::repository::Repository;

use super::remote_read::Offline;
use super::{Ending, Failure, Output, validate};

/// Add items to a run whose plan is open-ended
///
/// Adds all of them or none. Identical items that the run already has are skipped.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run
    run: String,
    /// A plan with the run's id and the additional items, or - for standard input
    plan: PathBuf,
    #[command(flatten)]
    pub(crate) offline: Offline,
}

/// Adds items.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let extended = repository.extend(&arguments.run, || validate::read_plan(&arguments.plan))?;
    let extended = match extended {
        Ok(extended) => extended,
        Err(problems) => return Ok(validate::report(output, Err(&problems))),
    };
    if !output.answers(&extended) {
        extended.items.iter().for_each(|id| output.line(id.as_str()));
    }
    if extended.items.is_empty() {
        output.note("the run has all of these items already; nothing changed");
    } else if !output.json {
        output.hint(&hints::run(&extended.run));
    }
    Ok(Ending::Done)
}
