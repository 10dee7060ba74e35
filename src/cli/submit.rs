//! `git handoff submit`

use std::path::{Path, PathBuf};

use git_handoff::engine::operations::DriveOptions;
use git_handoff::model::credential;
use git_handoff::plan::validate::Problems;
use git_handoff::repository::Repository;
use git_handoff::run::operate::submission::{Submission, Wanted};

use super::{Ending, Failure, Output, people, run, validate};

/// Validate a plan and create its run
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The plan, or - for standard input
    plan: PathBuf,
    /// Give the run this id instead of the plan's; the plan itself is not changed
    #[arg(long, value_name = "RUN")]
    id: Option<String>,
    /// Use this queue instead of the plan's
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Start from this commit instead of the plan's base
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Admit another key from the beginning: KEY=ROLE[,ROLE…], with the roles of `admit`;
    /// repeatable
    #[arg(long, value_name = "KEY=ROLES")]
    admit: Vec<String>,
    /// Run it as well
    #[arg(long)]
    run: bool,
}

/// Prints the run's id.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let admit = people::admitted(&arguments.admit, repository)?;
    let options = Wanted { queue: arguments.queue.clone(), base: arguments.base.clone(), admit, ..Wanted::default() };
    let submission = match submit(&arguments.plan, arguments.id.as_deref(), &options, repository)? {
        Ok(submission) => submission,
        Err(problems) => return Ok(validate::report(output, Err(&problems))),
    };
    submission.warnings.iter().for_each(|warning| output.warn(&credential::redact(warning)));
    if arguments.run {
        return run::drive(&[submission.run], &DriveOptions::default(), repository, output);
    }
    if !output.answers(&submission) {
        output.line(submission.run.as_str());
    }
    if !submission.created {
        output.note("the same plan was submitted before; nothing changed");
    }
    Ok(Ending::Done)
}

/// Validates and submits a plan file.
pub(crate) fn submit(
    path: &Path,
    id: Option<&str>,
    options: &Wanted,
    repository: &Repository,
) -> Result<Result<Submission, Problems>, Failure> {
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let bytes = validate::read_plan(path)?;
    // Validation reports a file that is not a plan.
    let renamed = id.and_then(|id| git_handoff::plan::renamed(&bytes, id));
    let submitted = repository.submit(renamed.as_ref().unwrap_or(&bytes), folder, options)?;
    Ok(submitted.map_err(|problems| problems.located(&bytes)))
}
